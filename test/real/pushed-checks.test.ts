// A new member is checked as one of the file is: TLS, PROXY headers, own addresses of checks. The members are a HAProxy that
// answers only to what the words promise.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { startHaproxy } from '../support/haproxy/haproxy.ts';
import { pushedHost } from '../support/octavia/pushed-host.ts';
import { textOf } from '../support/octavia/pushed-texts.ts';
import { Authority } from '../support/traffic/tls.ts';

const test = requires(ava, { haproxy: true, root: true, programs: ['openssl'] });

const CHECK = 'check inter 200ms fall 1 rise 1';
const TLS = 'ssl verify none sni ssl_fc_sni';
const PROVED = (folder: string) =>
  `ssl ca-file ${folder}/ca.pem crl-file ${folder}/crl.pem verify required sni ssl_fc_sni`;
const PORTS = {
  plain: 9_001,
  tls: 9_002,
  proxy: 9_003,
  tlsProxy: 9_004,
  closed: 9_005,
  revoked: 9_006,
} as const;

interface Kind {
  readonly words: string;
  readonly port: number;
  /** `L7OK` unless it says otherwise. */
  readonly status?: string;
}

/** Each answers a check of HTTP only if the check is what the words promise; one has a certificate that is revoked. */
const KINDS = (address: string, folder: string): readonly Kind[] => [
  { words: CHECK, port: PORTS.plain },
  { words: `${CHECK} ${TLS}`, port: PORTS.tls },
  { words: `${CHECK} ssl ca-file ${folder}/ca.pem sni ssl_fc_sni`, port: PORTS.tls },
  { words: `${CHECK} send-proxy`, port: PORTS.proxy },
  { words: `${CHECK} send-proxy ${TLS}`, port: PORTS.tlsProxy },
  { words: `${CHECK} send-proxy-v2`, port: PORTS.proxy },
  { words: `${CHECK} send-proxy-v2 ${TLS}`, port: PORTS.tlsProxy },
  { words: `${CHECK} send-proxy-v2-ssl-cn`, port: PORTS.proxy },
  { words: `${CHECK} send-proxy-v2-ssl-cn ${TLS}`, port: PORTS.tlsProxy },
  { words: `${CHECK} ${PROVED(folder)}`, port: PORTS.tls },
  { words: `${CHECK} ${PROVED(folder)}`, port: PORTS.revoked, status: 'L6RSP' },
  { words: `check check-ssl verify none inter 200ms fall 1 rise 1`, port: PORTS.tls },
  { words: `${CHECK} port ${PORTS.plain} send-proxy`, port: PORTS.closed },
  { words: `${CHECK} addr ${address} port ${PORTS.plain} ${TLS}`, port: PORTS.closed },
];

test('A new member is checked as one of the file is', async (t) => {
  const host = await pushedHost(t);
  const authority = await Authority.create(t);
  const good = await authority.issue({ names: ['web.example'] });
  const revoked = await authority.issue({ names: ['old.example'] });
  await writeFile(join(host.base, 'web.pem'), good.cert + good.key);
  await writeFile(join(host.base, 'old.pem'), revoked.cert + revoked.key);
  await writeFile(join(host.base, 'ca.pem'), authority.cert);
  await writeFile(join(host.base, 'crl.pem'), await authority.revoke([revoked]));
  const address = host.address(11);
  const tls = `ssl crt ${join(host.base, 'web.pem')}`;
  const members = await startHaproxy(`frontend members
  mode http
  bind ${address}:${PORTS.plain}
  bind ${address}:${PORTS.tls} ${tls}
  bind ${address}:${PORTS.revoked} ssl crt ${join(host.base, 'old.pem')}
  bind ${address}:${PORTS.proxy} accept-proxy
  bind ${address}:${PORTS.tlsProxy} accept-proxy ${tls}
  http-request return status 200`);
  t.teardown(() => members.stop());
  const kinds = KINDS(address, host.base);
  const named = kinds.map(({ words, port }, at) => ({ name: `m${at}`, address, port, words }));
  const options = {
    base: host.base,
    bind: `${host.address(1)}:8000`,
    backendLines: ['option httpchk GET /'],
  };
  const statuses = async (): Promise<readonly string[]> => {
    const rows = (await host.haproxy.stats()) ?? [];
    return kinds.map(
      (_, at) =>
        rows
          .find((row) => row.get('svname') === `m${at}`)
          ?.get('check_status')
          ?.replace('* ', '') ?? '',
    );
  };
  await host.haproxy.run(textOf({ ...options, members: named }));
  let seen: readonly string[] = [];
  const areWell = async () => {
    seen = await statuses();
    return seen.every((status, at) => status === (kinds[at]?.status ?? 'L7OK'));
  };
  await until('the members of the file are checked', areWell, { seen: () => seen });
  // Files must be known before a command names them.
  const first = named
    .filter(({ words }) => words.includes('crl-file'))
    .slice(0, 1)
    .map((member) => ({ ...member, name: 'first' }));
  const other = { ...options, backendLines: ['option httpchk GET / HTTP/1.0'] };
  await host.haproxy.run(textOf({ ...other, members: first }));
  t.is(await host.haproxy.run(textOf({ ...other, members: [...first, ...named] })), 'runtime');
  await until('new members are checked', areWell, { seen: () => seen });
});
