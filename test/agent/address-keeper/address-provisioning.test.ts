import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { Provisioning } from '../../../agent/address-keeper/address-provisioning.ts';
import type { AddressClaim } from '../../../agent/kubernetes/address-claim.ts';
import { silentLog } from '../../support/values/silent-log.ts';

interface Given {
  /** What the program writes to its standard output. */
  readonly output?: string;
  /** The pool asks for the program's answer. */
  readonly isAnswered?: boolean;
  readonly onAnswer?: (address: string, answer: string | undefined) => string | undefined;
}

async function start(
  t: ExecutionContext,
  { output = '', isAnswered = false, onAnswer = () => undefined }: Given = {},
) {
  const directory = await mkdtemp(join(tmpdir(), 'headgate-provisioning-'));
  const program = join(directory, 'program');
  await writeFile(join(directory, 'output'), output);
  await writeFile(program, `#!/bin/sh\ncat >> ${directory}/calls\ncat ${directory}/output\n`);
  await chmod(program, 0o755);
  const claims = new Map<string, AddressClaim>();
  const problems: string[] = [];
  const provisioning = new Provisioning({
    log: silentLog(),
    metrics: { provisioned: () => undefined },
    claimsOn: (address) => [...claims.values()].filter((claim) => claim.address === address),
    publicOf: ({ address, publicAddress }) => ({ address: publicAddress || address, isAnswered }),
    onAnswer: (request, answer) => onAnswer(request.address, answer),
    onProblem: (service) => problems.push(...provisioning.problemsOf(service).map(({ message }) => message)),
  });
  provisioning.restart(program, []);
  t.teardown(async () => {
    provisioning.close();
    await rm(directory, { recursive: true });
  });
  const change = async (name: string, claim: AddressClaim | undefined): Promise<void> => {
    if (claim === undefined) claims.delete(name);
    else claims.set(name, claim);
    provisioning.stored(name, claim);
    for (let looks = 0; provisioning.pending > 0; looks++) {
      if (looks > 1_000) throw new Error('The program is not called');
      await sleep(10);
    }
  };
  const calls = async () =>
    (await readFile(join(directory, 'calls'), 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  return { change, calls, problems, provisioning };
}

test('A release lists the Services that still have the address', async (t) => {
  const { change, calls } = await start(t, { output: 'words without an answer' });
  await change('a', claimOf('default/web', 80));
  await change('b', claimOf('default/api', 81));
  await change('reserved', { ...claimOf('default/other', 82), reserved: true });
  await change('a', undefined);
  await change('b', undefined);
  t.deepEqual(
    (await calls()).map(({ action, service, others }) => [action, service, others]),
    [
      ['assign', 'default/web', []],
      ['assign', 'default/api', ['default/web']],
      ['release', 'default/web', ['default/api']],
      ['release', 'default/api', []],
    ],
  );
});

test('The last line that the program writes answers the public address, which is no news to it', async (t) => {
  const answers: unknown[] = [];
  const { change, calls } = await start(t, {
    output: 'made it\n{"public":"203.0.113.9"}\n',
    isAnswered: true,
    onAnswer: (address, answer) => {
      answers.push([address, answer]);
      return undefined;
    },
  });
  const claim = claimOf('default/web', 80);
  await change('a', claim);
  await change('a', { ...claim, publicAddress: '203.0.113.9' });
  await change('a', undefined);
  t.deepEqual(answers, [['192.0.2.10', '203.0.113.9']]);
  t.deepEqual(
    (await calls()).map(({ action, public: outside }) => [action, outside]),
    [
      ['assign', undefined],
      ['release', '203.0.113.9'],
    ],
  );
});

test('An answer that cannot be used is a failure of the call', async (t) => {
  const { provisioning, problems } = await start(t, {
    output: 'none',
    isAnswered: true,
    onAnswer: (_, answer) => (answer === undefined ? 'answered nothing' : undefined),
  });
  provisioning.stored('a', claimOf('default/web', 80));
  while (problems.length === 0) await sleep(10);
  t.regex(problems[0] ?? '', /^Cannot assign 192\.0\.2\.10: program ".*" answered nothing$/);
  t.is(provisioning.pending, 1, 'it is called again');
});

function claimOf(service: string, port: number): AddressClaim {
  return {
    kind: 'AddressClaim',
    name: '192-0-2-10',
    address: '192.0.2.10',
    family: 'v4',
    pool: 'public',
    service,
    serviceUID: service,
    sharingKey: 'shared',
    ports: [{ protocol: 'TCP', port }],
    granted: undefined,
    publicAddress: '',
    since: 1,
    heldUntil: 0,
    reserved: false,
    namespace: '',
  };
}
