import test from 'ava';
import fc from 'fast-check';
import type { Command } from '../../../../agent/haproxy/socket/commands.ts';
import { type Failure, judgeReply } from '../../../../agent/haproxy/socket/reply.ts';

// Replies that are hard to get from a real HAProxy; runtime.test.ts has the others.
const own = { backend: 'b', server: '10.0.0.1:80' };
const add: Command = { kind: 'AddServer', ...own, address: '10.0.0.1', port: 80, keywords: [] };
const remove: Command = { kind: 'DeleteServer', ...own };
const ready: Command = { kind: 'SetServerState', ...own, state: 'ready' };
const cidr: Command = { kind: 'DeleteCidr', acl: 1, cidr: '10.0.0.0/8' };

const file = '/run/c/a.pem';
const of = { listener: 'b', file, certificate: {} as never };
const ofList = { listener: 'b', list: '/run/c/b.list', file, certificate: 'default/a' };

// The texts of 2.6.12, 3.0.11, 3.2.26 and 3.4.7.
const successes: readonly (readonly [Command, string])[] = [
  [{ kind: 'NewCertificate', ...of }, `New empty certificate store '${file}'!\n`],
  [{ kind: 'StageCertificate', ...of }, `+ + + Transaction created for certificate ${file}!\n`],
  [{ kind: 'StageCertificate', ...of }, `Transaction updated for certificate ${file}!\n`],
  [{ kind: 'CommitCertificate', ...of }, `Committing ${file}\nSuccess!\n`],
  [{ kind: 'CommitCertificate', ...of }, `Committing ${file}...\nSuccess!\n`],
  [
    { kind: 'AddToList', ...ofList },
    `Inserting certificate '${file}' in crt-list '/run/c/b.list'..\nSuccess!\n`,
  ],
  [{ kind: 'RemoveFromList', ...ofList }, `Entry '${file}' deleted in crtlist '/run/c/b.list'!\n`],
  [{ kind: 'DisableFrontend', listener: 'b', frontend: 'b' }, '\n'],
  [{ kind: 'DisableFrontend', listener: 'b', frontend: 'b' }, 'All sockets are already disabled.\n\n'],
  [{ kind: 'EnableFrontend', listener: 'b', frontend: 'b' }, '\n'],
  [{ kind: 'EnableFrontend', listener: 'b', frontend: 'b' }, 'All sockets are already enabled.\n\n'],
  [{ kind: 'AbortCertificate', file }, `Transaction aborted for certificate '${file}'!\n`],
];
for (const [command, text] of successes)
  test(`judgeReply() of ${command.kind} accepts ${JSON.stringify(text)}`, (t) => {
    t.deepEqual(judgeReply(command, text), { ok: true });
  });

test('judgeReply() refuses a transaction of another certificate', (t) => {
  const text = 'Transaction updated for certificate /run/c/b.pem!';
  t.deepEqual(judgeReply({ kind: 'StageCertificate', ...of }, text), { ok: false, kind: 'refused', text });
});

const failures: readonly (readonly [string, Command, string, Failure])[] = [
  ['the same server, by the name', add, 'Already exists a server with the same name in backend.\n', 'exists'],
  [
    'the same server, by the id',
    add,
    "'id' : custom id 5 already used at (null):0 ('server 10.0.0.1:80').\n",
    'exists',
  ],
  [
    'an id that another has',
    add,
    "'id' : custom id 5 already used at (null):0 ('server 10.0.0.2:80').\n",
    'id-taken',
  ],
  [
    'a static algorithm on 3.4',
    add,
    "Backend does not support dynamic servers : backend 's' uses a non dynamic load balancing method.\n",
    'refused',
  ],
  [
    'a success with a warning',
    add,
    'Ignoring cookie as HTTP mode is disabled.\nNew server registered.\n',
    'refused',
  ],
  ['an empty text where a word is due', add, '', 'refused'],
  ['an empty text where a word is due', remove, '', 'refused'],
  ['the words of another command', remove, 'New server registered.\n', 'refused'],
  ['a word where an empty text is due', ready, 'Done.\n', 'refused'],
  [
    'a frontend that does not listen again',
    { kind: 'EnableFrontend', listener: 'b', frontend: 'b' },
    'Failed to resume frontend, check logs for precise cause (port conflict?).\n',
    'refused',
  ],
  ['a socket without rights', ready, 'Permission denied\n', 'refused'],
  [
    'a certificate that is there',
    { kind: 'NewCertificate', ...of },
    `Certificate '${file}' already exists!\n`,
    'exists',
  ],
  ['a commit without an end', { kind: 'CommitCertificate', ...of }, `Committing ${file}.\n`, 'refused'],
  [
    'no transaction',
    { kind: 'CommitCertificate', ...of },
    `No ongoing transaction! !\nCan't commit ${file}!\n`,
    'refused',
  ],
  ['a server that has gone', remove, 'No such server.\n', 'gone'],
  ['a server that was deleted before the command', ready, 'No such server.\n', 'missing-server'],
  ['an unknown ACL before 3.2', cidr, 'Unknown map identifier. Please use #<id> or <file>.\n', 'missing-acl'],
];
for (const [title, command, text, kind] of failures) {
  test(`judgeReply() of ${command.kind} returns ${kind} for ${title}`, (t) => {
    t.deepEqual(judgeReply(command, text), { ok: false, kind, text: text.trimEnd() });
  });
}

test('judgeReply() ignores line feeds at the end of a reply', (t) => {
  for (const ending of ['', '\n', '\n\n']) {
    t.deepEqual(judgeReply(add, `New server registered.${ending}`), { ok: true });
    t.deepEqual(judgeReply(remove, `Server deleted.${ending}`), { ok: true });
    t.deepEqual(judgeReply(ready, ending), { ok: true });
  }
});

test('judgeReply() accepts only the exact success text', (t) => {
  const exact = ['', 'New server registered.', 'Server deleted.'];
  const around = fc.oneof(fc.constantFrom('', 'a\n'), fc.string());
  // Texts with the success text as a part.
  const text = fc.oneof(
    fc.string(),
    fc.tuple(around, fc.constantFrom(...exact), around).map((parts) => parts.join('')),
  );
  let resembling = 0;
  fc.assert(
    fc.property(fc.constantFrom(add, remove, ready, cidr), text, (command, text) => {
      const bare = text.replace(/\n+$/, '');
      if (exact.includes(bare)) return true;
      if (exact.some((one) => one !== '' && text.includes(one))) resembling++;
      return !judgeReply(command, text).ok;
    }),
    { numRuns: 300 },
  );
  t.true(resembling > 20, `Only ${resembling} of them resemble one`);
});
