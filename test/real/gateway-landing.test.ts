// Gateways in the landing: new ones, and those with another address or port, answer without a reload of the main HAProxy, and
// move there later.

import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { eventually } from '../support/basics/eventually.ts';
import { requires } from '../support/basics/requirements.ts';
import { processesOf, signal, TestHost } from '../support/host/agent.ts';
import { goneBack, readMetrics } from '../support/report/metrics-text.ts';
import { type Answer, request, startEcho } from '../support/traffic/echo.ts';
import { askInTls, tlsSecret } from '../support/traffic/tls.ts';
import { API, WEB } from '../support/values/certificates.ts';
import { backendObjects, gatewayClassJson, gatewayJson, routeJson } from '../support/values/gateways.ts';

const test = requires(ava, { haproxy: true });

type Json = Readonly<Record<string, unknown>>;

const PORT = 8080;
const HTTPS = 8443;
const NEW = 2;

/** A host whose main HAProxy serves the Gateway `edge` at address 1; nothing moves from the landing before `rest()`. */
async function served(t: ExecutionContext<unknown>) {
  const host = await TestHost.create(t, { landing: true, flags: ['--reload-interval', '100ms'] });
  const file = join(host.directory, 'headgate.yaml');
  await writeFile(file, 'landingRest: 1h\n');
  const flags = ['--config', file];
  /** The Service `name`, with a member that answers with its name. */
  const service = async (name: string, annotations: Json = {}): Promise<void> => {
    const [object = {}, slice = {}] = backendObjects(name, await startEcho(t, name));
    const metadata = { ...(object.metadata as Json), annotations };
    await host.write(`service-${name}.yaml`, [{ ...object, metadata }, slice]);
  };
  const route = (name: string, gateway: string, to: string, path = '/', hostname = 'web.example') =>
    host.write(`route-${name}.yaml`, [
      routeJson(name, [{ name: gateway }], {
        hostnames: [hostname],
        rules: [
          {
            matches: [{ path: { type: 'PathPrefix', value: path } }],
            backendRefs: [{ name: to, port: 80 }],
          },
        ],
      }),
    ]);
  const gateway = (name: string, last: number, listeners: readonly Json[] = [HTTP]): Promise<void> =>
    host.write(`gateway-${name}.yaml`, [
      gatewayJson(name, { addresses: [{ type: 'IPAddress', value: host.address(last) }], listeners }),
    ]);
  await host.write('class.yaml', [gatewayClassJson(), tlsSecret('web-tls', WEB), tlsSecret('api-tls', API)]);
  await service('web');
  await route('web', 'edge', 'web');
  await gateway('edge', 1);
  const agent = await host.start(flags);
  const ask = (last: number, path = '/', port = PORT): Promise<string> =>
    request({ address: host.address(last), port }, path, { headers: { host: 'web.example' } }).then(
      memberOf,
      (error: Error) => error.message,
    );
  const askTls = async (last: number, servername: string): Promise<string> => {
    const place = { address: host.address(last), port: HTTPS };
    const text = `GET / HTTP/1.1\r\nHost: ${servername}\r\nConnection: close\r\n\r\n`;
    const answer = await askInTls(place, { servername, rejectUnauthorized: false }, text);
    return /"member":"([^"]+)"/.exec(answer)?.[1] ?? answer;
  };
  const answers = (last: number, member: string, path = '/', port = PORT) =>
    eventually(
      () => ask(last, path, port),
      (answer) => answer === member,
    );
  await answers(1, 'web');
  const rest = async (): Promise<void> => {
    await writeFile(file, 'landingRest: 1s\n');
    agent.signal('SIGHUP');
  };
  const landed = async (): Promise<number> => (await host.status()).haproxy.landed;
  const moved = async (): Promise<void> => {
    await host.until('all are in the main HAProxy', async () => (await landed()) === 0);
    await host.until('the landing is empty', async () => (await sections(host)).length === 0);
  };
  return { host, agent, flags, service, route, gateway, ask, askTls, answers, rest, landed, moved };
}

const HTTP = { name: 'http', port: PORT, protocol: 'HTTP' };

const https = (...secrets: readonly string[]): Json => ({
  name: 'https',
  port: HTTPS,
  protocol: 'HTTPS',
  tls: { certificateRefs: secrets.map((name) => ({ name })) },
});

function memberOf({ echo, status }: Answer): string {
  return echo?.member ?? String(status);
}

/** The frontends and pools in the landing's file. */
async function sections(host: TestHost): Promise<readonly string[]> {
  const text = await readFile(host.landing.config, 'utf8');
  return Array.from(text.matchAll(/^(?:frontend|backend|listen) ((?:gateway|pool|ingress):\S+)$/gm), ([, name = '']) => name).sort();
}

/** The processes of the HAProxy with this file. */
function processes(path: string): readonly number[] {
  return processesOf(dirname(path));
}

test.serial('A new Gateway answers without a reload of the main HAProxy, then moves there', async (t) => {
  const { host, service, route, gateway, ask, askTls, answers, rest, landed, moved } = await served(t);
  const reloads = await host.reloads();
  await service('api');
  await route('new-web', 'new', 'web');
  await route('new-api', 'new', 'api', '/api');
  await gateway('new', NEW, [HTTP, https('web-tls', 'api-tls')]);
  await answers(NEW, 'web');
  await answers(NEW, 'api', '/api');
  await eventually(
    () => askTls(NEW, 'web.example').catch(String),
    (answer) => answer === 'web',
  );
  t.is(await landed(), 1);
  t.is(await host.reloads(), reloads, 'the main HAProxy is not reloaded');
  t.deepEqual(await sections(host), [
    'gateway:default:new:tcp:8080:v4',
    'gateway:default:new:tcp:8443:v4',
    'pool:default:api:tcp:80:v4',
    'pool:default:web:tcp:80:v4',
  ]);
  t.false((await host.config()).includes('default:api'));
  await rest();
  await moved();
  t.is(await host.reloads(), reloads + 1);
  t.is(await ask(NEW), 'web');
  t.is(await ask(NEW, '/api'), 'api');
  t.is(await askTls(NEW, 'web.example'), 'web');
});
