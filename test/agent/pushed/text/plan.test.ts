import test from 'ava';
import { type PushPlan, planPush } from '../../../../agent/pushed/text/plan.ts';
import { readText } from '../../../../agent/pushed/text/pushed-text.ts';
import type { ServerLine } from '../../../../agent/pushed/text/server-line.ts';
import { BACKEND, LISTENER, type TextOptions, textOf } from '../../../support/octavia/pushed-texts.ts';

const NO_FILES: ReadonlyMap<string, string> = new Map();
const CHECKED = 'check inter 5s fall 3 rise 2';

function plan(
  before: TextOptions | string,
  after: TextOptions | string,
  {
    leaving = new Map<string, ReadonlyMap<string, ServerLine>>(),
    files = [NO_FILES, NO_FILES] as const,
    takesCookies = false,
  } = {},
): PushPlan {
  const [one, two] = [before, after].map((each) => readText(typeof each === 'string' ? each : textOf(each)));
  if (one === undefined || two === undefined) throw new Error('no text');
  return planPush({ text: one, files: files[0], leaving, takesCookies }, { text: two, files: files[1] });
}

const at = (server: string) => ({ backend: BACKEND, server });

test('planPush() does nothing for another order of members, of status codes, or another size of the cache', (t) => {
  const [m1, m2] = [{ name: 'm1' }, { name: 'm2', address: '10.0.0.8' }];
  const expect = (codes: string) => [`http-check expect rstatus ${codes}`];
  t.deepEqual(
    plan(
      { members: [m1, m2], backendLines: expect('200|204|301'), globalLines: ['tune.ssl.cachesize 1000'] },
      { members: [m2, m1], backendLines: expect('301|200|204'), globalLines: ['tune.ssl.cachesize 777'] },
    ),
    { kind: 'none' },
  );
});

test('planPush() does nothing for another order of frontends and backends', (t) => {
  const text = textOf();
  const other = 'frontend other\n    bind 10.0.0.3:80\n    mode http\n';
  t.deepEqual(plan(`${text}${other}`, text.replace(/^frontend /m, `${other}\nfrontend `)), { kind: 'none' });
});

test('planPush() ignores lines that HAProxy never gets', (t) => {
  t.deepEqual(plan({ globalLines: ['group nogroup'], frontendLines: ['option http-use-htx'] }, {}), {
    kind: 'none',
  });
});

test('planPush() adds a member with the words of its line and starts its check', (t) => {
  const m1 = { name: 'm1', words: CHECKED };
  const m2 = { name: 'm2', address: '2001:db8::7', port: 8080, weight: 5, words: CHECKED };
  t.deepEqual(plan({ members: [m1] }, { members: [m1, m2] }), {
    kind: 'commands',
    commands: [
      {
        kind: 'AddServer',
        ...at('m2'),
        address: '2001:db8::7',
        port: 8080,
        keywords: ['weight', '5', ...CHECKED.split(' ')],
      },
      { kind: 'SetServerState', ...at('m2'), state: 'ready' },
      { kind: 'EnableHealth', ...at('m2') },
    ],
  });
});

test('planPush() leaves a new disabled member in maintenance', (t) => {
  const result = plan({ members: [] }, { members: [{ name: 'm1', words: 'disabled' }] });
  t.deepEqual(result.kind === 'commands' && result.commands.map(({ kind }) => kind), ['AddServer']);
});

test('planPush() changes a weight, disables, enables and removes by commands', (t) => {
  const before = [
    { name: 'heavier' },
    { name: 'off' },
    { name: 'on', words: 'disabled' },
    { name: 'gone', words: CHECKED },
  ];
  const after = [{ name: 'heavier', weight: 9 }, { name: 'off', words: 'disabled' }, { name: 'on' }];
  t.deepEqual(plan({ members: before }, { members: after }), {
    kind: 'commands',
    commands: [
      { kind: 'SetServerWeight', ...at('heavier'), weight: 9 },
      { kind: 'SetServerState', ...at('off'), state: 'maint' },
      { kind: 'SetServerState', ...at('on'), state: 'ready' },
      { kind: 'SetServerState', ...at('gone'), state: 'maint' },
    ],
  });
});

test('planPush() starts the check of a member that is enabled, because one that was added has none until then', (t) => {
  const plans = plan(
    { members: [{ name: 'm', words: `${CHECKED} disabled` }] },
    { members: [{ name: 'm', words: CHECKED }] },
  );
  t.deepEqual(plans.kind === 'commands' && plans.commands, [
    { kind: 'SetServerState', ...at('m'), state: 'ready' },
    { kind: 'EnableHealth', ...at('m') },
  ]);
});

test('planPush() lets a check of a new member be what it is in the file', (t) => {
  const keywords = (words: string) => {
    const result = plan({ members: [] }, { members: [{ name: 'm', words }] });
    const [add] = result.kind === 'commands' ? result.commands : [];
    return add?.kind === 'AddServer' ? add.keywords.slice(2).join(' ') : result;
  };
  t.is(
    keywords(`${CHECKED} ssl verify none sni ssl_fc_sni`),
    `${CHECKED} ssl verify none sni ssl_fc_sni check-ssl`,
  );
  for (const word of ['send-proxy', 'send-proxy-v2', 'send-proxy-v2-ssl-cn'])
    t.is(keywords(`${CHECKED} ${word}`), `${CHECKED} ${word} check-send-proxy`);
  t.is(
    keywords(`${CHECKED} addr 10.0.0.1 port 81 send-proxy ssl verify none`),
    `${CHECKED} addr 10.0.0.1 port 81 send-proxy ssl verify none`,
  );
  t.is(keywords('ssl verify none'), 'ssl verify none');
});

test('planPush() makes a removed member of the same line ready again', (t) => {
  const line = readText(textOf({ members: [{ name: 'm2', weight: 3 }] }))
    .sections.get(`backend ${BACKEND}`)
    ?.servers.get('m2');
  if (line === undefined) throw new Error('no server');
  const leaving = new Map([[BACKEND, new Map([['m2', line]])]]);
  const members = [{ name: 'm1' }, { name: 'm2', weight: 4 }];
  t.deepEqual(plan({}, { members }, { leaving }), {
    kind: 'commands',
    commands: [
      { kind: 'SetServerWeight', ...at('m2'), weight: 4 },
      { kind: 'SetServerState', ...at('m2'), state: 'ready' },
    ],
  });
  const moved = plan({}, { members: [{ name: 'm1' }, { name: 'm2', port: 81 }] }, { leaving });
  t.like(moved, {
    kind: 'reload',
    cause: `server m2 of ${BACKEND} is new: HAProxy still has another one of this name`,
  });
});

const NEW = { members: [{ name: 'm1' }, { name: 'm2' }] };
/** Both texts have these lines, the second one member more. */
const withLines = (backendLines: readonly string[], balance = 'roundrobin') =>
  plan({ backendLines, balance }, { backendLines, balance, ...NEW });

const RELOADS: readonly (readonly [title: string, plan: () => PushPlan, cause: RegExp])[] = [
  [
    'another bind',
    () => plan({}, { bind: '10.0.0.3:80' }),
    new RegExp(`^bind of frontend ${LISTENER} differs$`),
  ],
  [
    'another timeout',
    () => plan({}, textOf().replace('client 50000', 'client 9')),
    /^timeout client of frontend/,
  ],
  ['another balance', () => plan({}, { balance: 'leastconn' }), /^balance of backend .* differs$/],
  [
    'a new line',
    () => plan({}, { frontendLines: ['http-request deny if x'] }),
    /^http-request deny of frontend/,
  ],
  ['a line that is gone', () => plan({ globalLines: ['nbthread 2'] }, {}), /^nbthread of global differs$/],
  ['a new frontend', () => plan({}, `${textOf()}\nfrontend x\n    bind :1`), /^frontend x is new$/],
  ['a frontend that is gone', () => plan(`${textOf()}\nfrontend x\n    bind :1`, {}), /^frontend x is gone$/],
  [
    'another address of a member',
    () => plan({}, { members: [{ name: 'm1', port: 81 }] }),
    /differs in more than/,
  ],
  [
    'another word of a member',
    () => plan({}, { members: [{ name: 'm1', words: 'backup' }] }),
    /differs in more than/,
  ],
  [
    'a new member with external checks',
    () => withLines(['option external-check']),
    /external-check" was not tried/,
  ],
  ['a new member with "balance source"', () => withLines([], 'source'), /"balance source" was not tried/],
  ['a new member with "balance first"', () => withLines([], 'first'), /"balance first" was not tried/],
  [
    'a new member with cookies',
    () => withLines(['cookie SRV insert indirect nocache']),
    /"cookie SRV .*not tried/,
  ],
  ['a new member with checks of TLS greetings', () => withLines(['option ssl-hello-chk']), /not tried/],
  ['a new member with a default-server', () => withLines(['default-server check']), /not tried/],
  [
    'an unknown word',
    () => plan({ members: [] }, { members: [{ name: 'm', words: 'init-addr none' }] }),
    /"init-addr" is not one/,
  ],
  [
    'two words in one',
    () => plan({ members: [] }, { members: [{ name: 'm', words: 'ciphers A;del' }] }),
    /"ciphers" has the value "A;del"/,
  ],
  [
    'a member with a name that is no name',
    () => plan({ members: [] }, { members: [{ name: 'm/1' }] }),
    /a character that no member has/,
  ],
  [
    'a member with a host name',
    () => plan({ members: [] }, { members: [{ name: 'm', address: 'a.example' }] }),
    /no address/,
  ],
  [
    'a weight above what commands take',
    () => plan({ members: [] }, { members: [{ name: 'm', weight: 257 }] }),
    /above 256/,
  ],
  [
    'a weight with "balance source"',
    () => plan({ balance: 'source' }, { balance: 'source', members: [{ name: 'm1', weight: 2 }] }),
    /weight cannot be set/,
  ],
  [
    'two servers of one name',
    () => plan({}, { members: [{ name: 'm1' }, { name: 'm1' }] }),
    /two servers "m1"/,
  ],
  ['two sections of one name', () => plan({}, `${textOf()}\nbackend ${BACKEND}`), /two sections/],
  ['two sections of defaults', () => plan({}, `${textOf()}\ndefaults`), /sections of defaults/],
  ['a condition', () => plan({}, { globalLines: ['.if defined(X)', '.endif'] }), /has the condition/],
];

for (const [title, reload, cause] of RELOADS)
  test(`planPush() reloads for ${title}`, (t) => {
    const result = reload();
    t.is(result.kind, 'reload');
    if (result.kind === 'reload') t.regex(result.cause, cause);
  });

test('planPush() adds a member with its cookie if HAProxy takes it', (t) => {
  const backendLines = ['cookie SRV insert indirect nocache'];
  const members = [{ name: 'm1', words: 'cookie m1' }];
  const add = (takesCookies: boolean) =>
    plan({ backendLines, members: [] }, { backendLines, members }, { takesCookies }).kind;
  t.is(add(true), 'commands');
  t.is(add(false), 'reload');
});

test('planPush() sets the weight 0 with "balance source"', (t) => {
  const result = plan({ balance: 'source' }, { balance: 'source', members: [{ name: 'm1', weight: 0 }] });
  t.like(result, { kind: 'commands' });
});

test('planPush() reloads if the content of a named file differs', (t) => {
  const files = (digest: string) => new Map([['/certs/a.pem', digest]]);
  t.like(plan({}, {}, { files: [files('1'), files('2')] }), {
    kind: 'reload',
    cause: 'the content of /certs/a.pem differs',
  });
  t.like(plan({}, {}, { files: [files('1'), files('1')] }), { kind: 'none' });
});

test('planPush() does nothing for the same text, also for one whose order could matter', (t) => {
  const text = `${textOf()}\ndefaults\n    mode tcp\n`;
  t.deepEqual(plan(text, text), { kind: 'none' });
});
