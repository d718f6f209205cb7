import { spawn } from 'node:child_process';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { HeadgateError } from '../../../agent/base/errors.ts';
import {
  createLog,
  formatOf,
  type Log,
  type LogFields,
  type LogFormat,
  type LogLevel,
} from '../../../agent/host/log.ts';

/** The lines of a log with this level and format. */
function lines(write: (log: Log) => void, level: LogLevel = 'info', format: LogFormat = 'json'): string[] {
  const written: string[] = [];
  write(createLog({ level, format, destination: { write: (line) => written.push(line) } }));
  return written;
}

function logged(fields: LogFields): Record<string, unknown> {
  const [line = ''] = lines((log) => log.info('Message', fields));
  const { level: _, time: __, message: ___, ...rest } = JSON.parse(line);
  return rest;
}

test('A line is one JSON object with level and time, without process and host', (t) => {
  const [line = '', ...others] = lines((log) => log.warn('Reload needed', { listener: 'a', count: 2 }));
  t.deepEqual(others, []);
  t.true(line.endsWith('}\n'));
  const { time, ...rest } = JSON.parse(line);
  t.regex(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  t.deepEqual(rest, { level: 'warn', message: 'Reload needed', listener: 'a', count: 2 });
});

test('A line for journald begins with its priority and has no time', (t) => {
  const written = lines(
    (log) => {
      log.debug('b');
      log.info('c', { x: '1\n2' });
      log.warn('d');
      log.error('e');
    },
    'trace',
    'journal',
  );
  t.deepEqual(written, [
    '<7>{"level":"debug","message":"b"}\n',
    '<6>{"level":"info","x":"1\\n2","message":"c"}\n',
    '<4>{"level":"warn","message":"d"}\n',
    '<3>{"level":"error","message":"e"}\n',
  ]);
});

test('A line for a terminal is short, and a text of an object cannot forge a line or set colours', (t) => {
  const [line = '', ...others] = lines(
    (log) =>
      log.info('Bad\u001b[31m\nname', {
        service: 'default/web',
        text: 'two words',
        list: [1],
        none: undefined,
      }),
    'info',
    'terminal',
  );
  t.deepEqual(others, []);
  t.is(line.slice(8), ' info  Bad\\u001b[31m\\u000aname  service=default/web  text="two words"  list=[1]\n');
  t.regex(line, /^\d\d:\d\d:\d\d /);
});

test('setLevel() changes the lowest level that is logged', (t) => {
  const written = lines((log) => {
    log.debug('Not yet');
    log.setLevel('debug');
    log.debug('Now');
    log.setLevel('error');
    log.warn('No longer');
  });
  t.deepEqual(
    written.map((line) => JSON.parse(line).message),
    ['Now'],
  );
});

test('Secrets are redacted by the name of the field at any depth, and by their form', (t) => {
  const pem = '-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----';
  t.deepEqual(
    logged({
      token: 'a',
      bearerToken: 'a',
      password: 'b',
      key: 'c',
      tls_key: 'c',
      certificate: pem,
      headers: { Authorization: 'Bearer abc', accept: '*/*' },
      list: [{ clientSecret: 'd', name: 'n' }],
      map: new Map([['password', 'e']]),
      text: `before ${pem} after`,
      request: 'Authorization: Bearer eyJh.bGci-_=',
      loadBalancer: 'default/web',
      keys: ['default/web'],
    }),
    {
      token: '[redacted]',
      bearerToken: '[redacted]',
      password: '[redacted]',
      key: '[redacted]',
      tls_key: '[redacted]',
      certificate: '[redacted]',
      headers: { Authorization: '[redacted]', accept: '*/*' },
      list: [{ clientSecret: '[redacted]', name: 'n' }],
      map: { password: '[redacted]' },
      text: 'before [redacted] after',
      request: 'Authorization: Bearer [redacted]',
      loadBalancer: 'default/web',
      keys: ['default/web'],
    },
  );
});

test('A HeadgateError is logged as its message and code, any other error with its stack', (t) => {
  const cause = new Error('ENOSPC');
  t.deepEqual(logged({ error: new HeadgateError('FILE_WRITE', 'Cannot write "/x"', { cause }) }), {
    error: 'Cannot write "/x": ENOSPC',
    code: 'FILE_WRITE',
  });
  const { error, stack } = logged({ error: new TypeError('x is undefined') });
  t.is(error, 'x is undefined');
  t.regex(String(stack), /^TypeError: x is undefined\n +at .*log\.test\.ts/);
});

test('A value that JSON does not have does not suppress the line', (t) => {
  const round: Record<string, unknown> = { name: 'round' };
  round.self = round;
  t.like(logged({ round }), { round: { name: 'round' } });
  t.deepEqual(logged({ big: 10n, set: new Set([1]), bytes: Buffer.from('xyz') }), {
    big: '10',
    set: [1],
    bytes: '3 bytes',
  });
  const trap = {
    get field() {
      throw new Error('trap');
    },
  };
  t.deepEqual(logged(trap), { fields: 'Cannot read them: trap' });
});

test('A call does not throw if the destination throws', (t) => {
  let calls = 0;
  const destination = {
    write() {
      calls++;
      throw new Error('ENOSPC');
    },
  };
  const log = createLog({ level: 'info', format: 'json', destination });
  t.notThrows(() => log.error('Lost'));
  t.is(calls, 1);
});

test('formatOf() chooses journal only for the descriptor that JOURNAL_STREAM names', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'log-'));
  const file = openSync(join(directory, 'out'), constants.O_CREAT | constants.O_WRONLY);
  try {
    const { dev, ino } = fstatSync(file);
    t.is(formatOf(file, { JOURNAL_STREAM: `${dev}:${ino}` }), 'journal');
    t.is(formatOf(file, { JOURNAL_STREAM: '8:1' }), 'json');
    t.is(formatOf(file, {}), 'json');
  } finally {
    closeSync(file);
    await rm(directory, { recursive: true });
  }
});

const program = `
  import { createLog } from ${JSON.stringify(new URL('../../../agent/host/log.ts', import.meta.url).href)};
  const log = createLog({ level: 'info' });
  const started = process.hrtime.bigint();
  for (let i = 0; i < COUNT; i++) log.info('Line', { i, filler: 'x'.repeat(500) });
  console.error('done', Number(process.hrtime.bigint() - started) / 1e6);
`;

test('A full disk does not stop the process', async (t) => {
  const full = openSync('/dev/full', 'w');
  const { code, stderr } = await runLogging(10, full);
  closeSync(full);
  t.is(code, 0);
  t.regex(stderr, /^done/);
});

test('A reader that closes the pipe does not stop the process', async (t) => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', program.replace('COUNT', '2000')]);
  child.stdout.once('data', () => child.stdout.destroy());
  const stderr = await textOf(child.stderr);
  t.regex(stderr, /^done/);
});

test('A reader that stalls loses lines: the agent does not wait, and no lines are mixed', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'log-'));
  const pipe = join(directory, 'pipe');
  try {
    await new Promise((resolve) => spawn('mkfifo', [pipe]).on('close', resolve));
    const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
    // The child opens the pipe itself, because spawn() would make it one that blocks.
    const prologue = `
      import { closeSync, openSync } from 'node:fs';
      closeSync(1);
      openSync(${JSON.stringify(pipe)}, ${constants.O_WRONLY | constants.O_NONBLOCK});
    `;
    const { code, stderr } = await runLogging(200, 'ignore', prologue);
    const received = drain(reader);
    closeSync(reader);
    t.is(code, 0);
    t.true(Number(stderr.split(' ')[1]) < 5000);
    const whole = received.split('\n').filter((line) => line.startsWith('{') && line.endsWith('}'));
    t.true(whole.length > 50 && whole.length < 200);
    for (const line of whole) t.notThrows(() => JSON.parse(line));
  } finally {
    await rm(directory, { recursive: true });
  }
});

async function runLogging(
  count: number,
  stdout: number | 'ignore',
  prologue = '',
): Promise<{ code: number | null; stderr: string }> {
  const args = ['--input-type=module', '-e', prologue + program.replace('COUNT', String(count))];
  const child = spawn(process.execPath, args, { stdio: ['ignore', stdout, 'pipe'] });
  const closed = new Promise<number | null>((resolve) => child.on('close', resolve));
  const stderr = await textOf(child.stderr);
  return { code: await closed, stderr };
}

async function textOf(stream: NodeJS.ReadableStream | null): Promise<string> {
  let text = '';
  for await (const chunk of stream ?? []) text += chunk;
  return text;
}

function drain(descriptor: number): string {
  const buffer = Buffer.alloc(1024 * 1024);
  let text = '';
  for (;;) {
    const bytes = readSync(descriptor, buffer);
    if (bytes === 0) return text;
    text += buffer.toString('utf8', 0, bytes);
  }
}
