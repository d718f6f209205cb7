// Reloads of a port where TLS of some hosts is passed through: no client is lost whose TLS ends here, whether or not the port has a
// dispatcher afterwards.

import ava, { type ExecutionContext } from 'ava';
import { dispatcher } from '../../agent/model/names.ts';
import { eventually } from '../support/basics/eventually.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { ModelHost } from '../support/haproxy/model-host.ts';
import { startEcho } from '../support/traffic/echo.ts';
import { slowHandshake } from '../support/traffic/slow-hello.ts';
import { Authority, TlsLoad } from '../support/traffic/tls.ts';
import { CertificateTexts } from '../support/values/certificate-texts.ts';
import { entryOf, forwardTo, gatewayOf, patternOf, poolOf, sectionOf } from '../support/values/routes.ts';

const test = requires(ava, { haproxy: true, programs: ['openssl'] });

const HOST = 'ended.example.org';
const TLS = { minVersion: '1.2', ciphers: [], alpn: ['http/1.1'], clients: undefined } as const;
const CLIENT = { servername: HOST, rejectUnauthorized: false };
const REQUEST = `GET / HTTP/1.1\r\nhost: ${HOST}\r\nconnection: close\r\n\r\n`;

/** A port that ends the TLS of one host, perhaps behind a dispatcher, for clients of loopback only. */
async function served(t: ExecutionContext) {
  const authority = await Authority.create(t);
  const texts = new CertificateTexts();
  const certificate = texts.pair('default/ended', await authority.issue({ names: [HOST] }));
  const place = { address: '127.0.0.1', port: await freePort() };
  const hosts = [
    { host: patternOf('passed.example.org'), backends: forwardTo('raw').backends },
    { host: patternOf(HOST), backends: [], isEnded: true as const },
  ];
  const gateway = (isDispatched: boolean) =>
    gatewayOf(place, [sectionOf('ended', '*', { '*': [entryOf('/', 'web')] })], {
      tls: { ...TLS, certificates: [certificate] },
      allowedCidrs: ['127.0.0.0/8'],
      ...(isDispatched && { dispatch: { kind: 'tls', hosts } }),
    });
  const pools = [poolOf('raw', ['127.0.0.1:9'], { mode: 'tcp' }), poolOf('web', [await startEcho(t, 'web')])];
  const flags = ['--reload-interval', '100ms'];
  const model = await ModelHost.start(t, [gateway(true), ...pools], { pems: texts, flags });
  const reloaded = async (isDispatched: boolean): Promise<void> => {
    const before = model.reloads;
    await model.serve(gateway(isDispatched));
    await eventually(
      async () => model.reloads,
      (reloads) => reloads > before,
    );
    await model.settled();
  };
  /** The member that answers a client whose first message comes in two parts. */
  const slowly = async (between: () => Promise<unknown>): Promise<string> => {
    const { socket } = await slowHandshake(place, CLIENT, async () => {
      const [{ name = '' } = {}] = gateway(true).listeners;
      await eventually(
        () => model.ask('show sess'),
        (text) => text.includes(`fe=${dispatcher(name)} `),
      );
      await between();
    });
    socket.setEncoding('utf8').write(REQUEST);
    let text = '';
    for await (const chunk of socket) text += chunk;
    return /"member":"([^"]+)"/.exec(text)?.[1] ?? text;
  };
  return { place, model, gateway, reloaded, slowly };
}

test.serial(
  'A client that waits in a dispatcher is served after a reload without the dispatcher',
  async (t) => {
    const { reloaded, slowly } = await served(t);
    t.is(await slowly(() => reloaded(false)), 'web');
    await reloaded(true);
    const twice = async (): Promise<void> => {
      await reloaded(false);
      await reloaded(true);
      await reloaded(false);
    };
    t.is(await slowly(twice), 'web', 'after several reloads');
  },
);

const RELOADS = 10;

test.serial('No client is lost while a dispatcher comes and goes under load', async (t) => {
  const { place, reloaded } = await served(t);
  const load = new TlsLoad(place, CLIENT, 6);
  for (let reload = 0; reload < RELOADS; reload++) {
    await reloaded(reload % 2 === 1);
    await load.more(20);
  }
  await load.stop();
  t.deepEqual([...new Set(load.failures)], []);
});
