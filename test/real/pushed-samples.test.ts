// Each of Octavia's sample objects, rendered by Octavia: HAProxy runs the text, the same text does nothing, and members come
// and go by commands wherever that was tried.

import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import ava from 'ava';
import { haproxyVersion } from '../../agent/haproxy/socket/version.ts';
import { readBack } from '../../agent/pushed/readback.ts';
import { readText } from '../../agent/pushed/text/pushed-text.ts';
import { requires } from '../support/basics/requirements.ts';
import { haproxyExecutable } from '../support/haproxy/haproxy.ts';
import { type PushedHost, pushedHost } from '../support/octavia/pushed-host.ts';
import { newestTexts, sampleTexts } from '../support/octavia/render-haproxy.ts';
import { certificate } from '../support/traffic/certificate.ts';

const test = requires(ava, { haproxy: true, root: true, programs: ['octavia-worker', 'openssl'] });

/** Samples of which a new member is a reload on HAProxy 2.6. */
const OCTAVIA_11 = ['cookies', 'ping', 'tls hello'];
/** It checks TLS greetings by `check check-ssl`. */
const OCTAVIA_18 = ['cookies', 'ping'];
/** Headers of a check behind its version, which HAProxy refuses from 3.0 on. */
const OLD_CHECK = /option httpchk .*\\r\\n/;
const PEER = 'ZfWexrHs1hcNUERHQEPMqVYKgHE';

const samplesRun = test.macro<
  [
    texts: (base: string) => Promise<readonly { readonly name: string; readonly text: string }[]>,
    reloaded: readonly string[],
  ]
>(async (t, textsOf, reloaded) => {
  const host = await pushedHost(t, { peer: PEER });
  const all = await textsOf(host.base);
  t.true(all.length >= 28);
  const { major } = await haproxyVersion(haproxyExecutable);
  const samples = all.filter(({ text }) => major < 3 || !OLD_CHECK.test(text));
  const results = new Map<string, string>();
  for (const { name, text: rendered } of samples) {
    const text = await runnable(rendered, host);
    await t.notThrowsAsync(host.haproxy.check(text), name);
    await host.haproxy.run(text);
    t.is(await host.haproxy.run(text), 'none', name);
    t.is(await host.haproxy.run(rearranged(text)), 'none', `${name}: rearranged`);
    await host.haproxy.run(text);
    const servers = [...text.matchAll(/^ +server .*\n/gm)].map(([line]) => line);
    const last = servers.at(-1);
    if (last === undefined) continue;
    const isAsPushed = async (pushed: string, what: string): Promise<void> => {
      const { difference } = readBack(await host.serversState(), readText(pushed));
      t.is(difference, '', `${name}: ${what}`);
    };
    const fewer = text.replace(last, '');
    t.is(await host.haproxy.run(fewer), 'runtime', `${name}: a member goes`);
    await isAsPushed(fewer, 'a member has gone');
    t.is(await host.haproxy.run(text), 'runtime', `${name}: it comes back`);
    await isAsPushed(text, 'it is back');
    const more = text.replace(last, last + last.replace(/(server|cookie) (\S+)/g, '$1 $2-new'));
    results.set(name, await host.haproxy.run(more));
    await isAsPushed(more, 'a new one');
  }
  const found = [...results].filter(([, result]) => result === 'reload').map(([name]) => name);
  t.deepEqual(
    found.sort(),
    reloaded.filter((name) => results.has(name) && (name !== 'cookies' || major < 3)),
  );
});

test.serial(
  "Octavia 11's sample texts run, and changes of members lead to the text",
  samplesRun,
  sampleTexts,
  OCTAVIA_11,
);
test.serial(
  "Octavia 18's sample texts run, and changes of members lead to the text",
  samplesRun,
  newestTexts,
  OCTAVIA_18,
);

/** As another controller process would render it: other orders, another size of the cache. */
function rearranged(text: string): string {
  const [head = '', ...proxies] = text.split(/^(?=(?:frontend|backend) )/m);
  const turned = proxies.map((proxy) => {
    const servers = proxy.match(/^ +server .*\n?/gm) ?? [];
    const lines = [...servers].reverse().map((line) => (line.endsWith('\n') ? line : `${line}\n`));
    return `${proxy.replaceAll(/^ +server .*\n?/gm, '').trimEnd()}\n${lines.join('')}\n`;
  });
  return `${head}${turned.reverse().join('')}`
    .replace(/cachesize \d+/, 'cachesize 1234')
    .replace(
      /(rstatus )(\S+)/g,
      (_, word: string, codes: string) => word + codes.split('|').reverse().join('|'),
    );
}

/** The text with addresses and limits of this host, and the files that it names. */
async function runnable(rendered: string, host: PushedHost): Promise<string> {
  const text = rendered
    .replaceAll('/var/lib/octavia', host.base)
    .replaceAll('10.0.0.2:', `${host.address(1)}:`)
    .replaceAll('10.0.1.2:', `${host.address(2)}:`)
    .replaceAll('2001:db8::2:', '[::1]:1')
    // The amphorae of the sample have no state in which they are peers.
    .replace(/^peers .*\n/m, (line) => `${line}    peer ${PEER} ${host.address(1)}:1025\n`)
    .replaceAll(/(maxconn|fullconn) \d+/g, '$1 100');
  const list = / crt-list (\S+)/.exec(text)?.[1];
  if (list === undefined) return text;
  await mkdir(dirname(list), { recursive: true });
  const { cert, key } = await certificate(host.base, 'web.example');
  const path = join(host.base, 'web.pem');
  await writeFile(path, cert + key);
  await writeFile(list, `${path}\n`);
  return text;
}
