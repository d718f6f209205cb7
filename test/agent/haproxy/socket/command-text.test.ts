import test from 'ava';
import fc from 'fast-check';
import { HeadgateError } from '../../../../agent/base/errors.ts';
import { commandText, MAX_COMMAND_BYTES } from '../../../../agent/haproxy/socket/command-text.ts';
import type { Command } from '../../../../agent/haproxy/socket/commands.ts';
import { capabilitiesOf, parseVersion } from '../../../../agent/haproxy/socket/version.ts';
import { WEB } from '../../../support/values/certificates.ts';

const old = capabilitiesOf(parseVersion('2.6.12'));
const now = capabilitiesOf(parseVersion('3.4.0'));
const backend = 'default:web:tcp:80:v4';
const server = '10.0.0.2:81';
const added = { kind: 'AddServer', backend, server, address: '10.0.0.2', port: 81, keywords: [] } as const;

const lines: (readonly [Command, string])[] = [
  [added, `add server ${backend}/${server} 10.0.0.2:81`],
  [{ ...added, address: '2001:db8::1' }, `add server ${backend}/${server} [2001:db8::1]:81`],
  [
    { ...added, keywords: ['id', '7', 'weight', '100', 'check', 'inter', '2000ms', 'send-proxy-v2'] },
    `add server ${backend}/${server} 10.0.0.2:81 id 7 weight 100 check inter 2000ms send-proxy-v2`,
  ],
  [
    { kind: 'SetServerState', backend, server, state: 'drain' },
    `set server ${backend}/${server} state drain`,
  ],
  [{ kind: 'EnableHealth', backend, server }, `enable health ${backend}/${server}`],
  [{ kind: 'SetServerWeight', backend, server, weight: 0 }, `set server ${backend}/${server} weight 0`],
  [{ kind: 'ShutdownSessions', backend, server }, `shutdown sessions server ${backend}/${server}`],
  [{ kind: 'DeleteServer', backend, server }, `del server ${backend}/${server}`],
  [{ kind: 'AddCidr', acl: 12_345, cidr: '2001:db8::/32' }, 'add acl #12345 2001:db8::/32'],
  [{ kind: 'DeleteCidr', acl: 12_345, cidr: '0.0.0.0/0' }, 'del acl #12345 0.0.0.0/0'],
];
const of = { listener: backend, file: '/run/c/default_web.pem', certificate: {} as never };
const ofList = { listener: backend, list: '/run/c/web.list', file: of.file, certificate: 'default/web' };
lines.push(
  [{ kind: 'NewCertificate', ...of }, 'new ssl cert /run/c/default_web.pem'],
  [{ kind: 'CommitCertificate', ...of }, 'commit ssl cert /run/c/default_web.pem'],
  [{ kind: 'AbortCertificate', file: of.file }, 'abort ssl cert /run/c/default_web.pem'],
  [{ kind: 'AddToList', ...ofList }, 'add ssl crt-list /run/c/web.list /run/c/default_web.pem'],
  [{ kind: 'RemoveFromList', ...ofList }, 'del ssl crt-list /run/c/web.list /run/c/default_web.pem'],
);
for (const [command, line] of lines) {
  test(`commandText() writes "${line}"`, (t) => {
    t.is(commandText(command, now), line);
  });
}

test('commandText() adds both pool keywords before 3.0, each only once', (t) => {
  const text = (keywords: readonly string[]): string => commandText({ ...added, keywords }, old);
  t.regex(text(['weight', '1']), / weight 1 pool-max-conn -1 pool-purge-delay 5s$/);
  t.regex(text(['pool-max-conn', '9']), /:81 pool-max-conn 9 pool-purge-delay 5s$/);
});

test('commandText() sends the blocks of PEM as a payload, and never shows them', (t) => {
  const stage: Command = { kind: 'StageCertificate', ...of };
  const line = 'set ssl cert /run/c/default_web.pem <<';
  t.is(commandText(stage, old, `x\n\n${WEB.cert}\n${WEB.key}`), `${line}\n${WEB.cert}${WEB.key}`);
  for (const payload of [
    '',
    'rubbish',
    '-----BEGIN X-----\nabc;def\n-----END X-----\n',
    `${WEB.cert}`.repeat(30),
  ]) {
    const error = t.throws(() => commandText(stage, old, payload), { instanceOf: HeadgateError });
    t.is(error?.retry, 'never');
    t.false(error?.message.includes('abc'));
  }
});

const refused: readonly (readonly [string, Command])[] = [
  ['a file with a colon', { kind: 'NewCertificate', ...of, file: '/run/a:b' }],
  ['a file with a line feed', { kind: 'NewCertificate', ...of, file: '/run/a\nb' }],
  ['a relative file', { kind: 'AbortCertificate', file: 'a' }],
  ['another function than str()', { ...added, keywords: ['lua(x)'] }],
  ['a backend with a slash', { ...added, backend: 'a/b' }],
  ['an empty server name', { ...added, server: '' }],
  ['a server name of 601 characters', { ...added, server: 'x'.repeat(601) }],
  ['a name for an address', { ...added, address: 'example.com' }],
  ['an address with a zone', { ...added, address: 'fe80::1%eth0' }],
  ['port 0', { ...added, port: 0 }],
  ['port 1.5', { ...added, port: 1.5 }],
  ['keyword "enabled"', { ...added, keywords: ['enabled'] }],
  ['an empty keyword', { ...added, keywords: [''] }],
  ['a keyword with a blank', { ...added, keywords: ['weight 1'] }],
  ['the beginning of a payload', { ...added, keywords: ['<<'] }],
  ['a second command', { ...added, keywords: [';', 'del', 'server'] }],
  ['weight 257', { kind: 'SetServerWeight', backend, server, weight: 257 }],
  ['weight NaN', { kind: 'SetServerWeight', backend, server, weight: Number.NaN }],
  ['a state that is none', { kind: 'SetServerState', backend, server, state: 'up' as 'ready' }],
  ['a bare address for a CIDR', { kind: 'AddCidr', acl: 1, cidr: '10.0.0.0' }],
  ['a prefix that is too long', { kind: 'AddCidr', acl: 1, cidr: '10.0.0.0/33' }],
  ['a CIDR with two slashes', { kind: 'DeleteCidr', acl: 1, cidr: '10.0.0.0/8/8' }],
  ['a negative ACL', { kind: 'AddCidr', acl: -1, cidr: '10.0.0.0/8' }],
];
for (const [title, command] of refused) {
  test(`commandText() throws on ${title}`, (t) => {
    const error = t.throws<HeadgateError>(() => commandText(command, now), { code: 'RUNTIME_TOKEN' });
    t.is(error?.retry, 'never');
  });
}

test('commandText() throws on a line over 12 KB and on more than 64 words', (t) => {
  const keywords = (count: number, length: number): readonly string[] =>
    Array.from({ length: count }, () => 'x'.repeat(length));
  t.notThrows(() => commandText({ ...added, keywords: keywords(60, 1) }, now));
  for (const tooMuch of [keywords(61, 1), keywords(13, 1_000)]) {
    t.throws(() => commandText({ ...added, keywords: tooMuch }, now), { code: 'RUNTIME_TOO_LONG' });
  }
});

test('commandText() never returns several lines, a payload or a line that is too long', (t) => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('a', '10.0.0.1', '::1', '10.0.0.0/8', ';', '<<', '\n', '\\', 'ready'),
  );
  const number = fc.oneof(fc.integer(), fc.double());
  const commands = fc
    .tuple(
      fc.constantFrom(...lines.map(([command]) => command)),
      fc.object({ values: [text, number], maxDepth: 0 }),
      fc.array(text),
      text,
      number,
    )
    .map(([command, noise, keywords, word, count]) => {
      const mixed: Record<string, unknown> = { ...noise, ...command };
      for (const key of Object.keys(command)) {
        if (key === 'keywords') mixed[key] = keywords;
        else if (key !== 'kind' && word.length % 2 === 0)
          mixed[key] = typeof mixed[key] === 'number' ? count : word;
      }
      return mixed as unknown as Command;
    });
  fc.assert(
    fc.property(commands, fc.constantFrom(old, now), (command, capabilities) => {
      try {
        const line = commandText(command, capabilities);
        return (
          /^[a-z]+ [\x21-\x7e ]+$/.test(line) && !/[;\\]|<</.test(line) && line.length <= MAX_COMMAND_BYTES
        );
      } catch (error) {
        return error instanceof HeadgateError && error.retry === 'never';
      }
    }),
    { numRuns: 2_000 },
  );
  t.pass();
});
