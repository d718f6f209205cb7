import { rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import type { AddressClaim } from '../../../../agent/kubernetes/address-claim.ts';
import { ClaimFile, readClaimFile } from '../../../../agent/kubernetes/writers/claim-file.ts';
import { until } from '../../../support/basics/until.ts';
import { claim as claimOf } from '../../../support/values/address-requests.ts';

const claim = (last: number, service = 'default/web') =>
  claimOf(`192-0-2-${last}`, { address: `192.0.2.${last}`, service });

async function fileOf(t: ExecutionContext, path?: string) {
  const directory = await mkdtemp(join(tmpdir(), 'headgate-claims-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const claims = new Map<string, AddressClaim>();
  const kept: string[] = [];
  const failures: string[] = [];
  const tampered: string[] = [];
  const place = path ?? join(directory, 'addresses', 'claims.json');
  const file = new ClaimFile({
    path: place,
    claims: () => claims.values(),
    desired: (name) => claims.get(name),
    onKept: (name, value) => kept.push(`${name} ${value?.service ?? 'gone'}`),
    onFault: (message) => failures.push(message),
    onTampered: () => tampered.push(place),
    retryMs: 5,
    checkMs: 5,
  });
  const put = (value: AddressClaim) => {
    claims.set(value.name, value);
    file.write([value.name]);
  };
  return { path: place, claims, kept, failures, tampered, file, put };
}

test('ClaimFile reports each claim once it is on disk, and readClaimFile() reads it unchanged', async (t) => {
  const { path, claims, kept, file, put } = await fileOf(t);
  t.deepEqual(await readClaimFile(path), { claims: [], problems: [] });
  for (let last = 1; last <= 250; last++) put(claim(last, `default/s${last}`));
  await until('all are kept', () => kept.length === 250);
  t.deepEqual(await readClaimFile(path), { claims: [...claims.values()], problems: [] });
  t.is((await stat(path)).mode & 0o777, 0o600);
  claims.delete('192-0-2-1');
  file.write(['192-0-2-1']);
  await file.close();
  t.is(kept.at(-1), '192-0-2-1 gone');
  t.is((await readClaimFile(path)).claims.length, 249);
});

test('readClaimFile() skips a damaged claim, and reports a file that is not a list', async (t) => {
  const { path, file, put } = await fileOf(t);
  put(claim(1));
  put(claim(2));
  await file.close();
  const text = await readFile(path, 'utf8');
  await writeFile(path, text.replace('"192.0.2.1"', '"192.0.2.999"'));
  const { claims, problems } = await readClaimFile(path);
  t.deepEqual(claims, [claim(2)]);
  t.regex(problems[0]?.message ?? '', /AddressClaim 192-0-2-1: spec.address: "192.0.2.999" is not/);
  await writeFile(path, text.slice(0, 50));
  t.is((await readClaimFile(path)).problems[0]?.reason, 'InvalidFile');
});

test('readClaimFile() reads the complete lines of a truncated or damaged file', async (t) => {
  const { path, file, put } = await fileOf(t);
  for (let last = 1; last <= 4; last++) put(claim(last));
  await file.close();
  const text = await readFile(path, 'utf8');
  const damages: [string, number[]][] = [
    [text.slice(0, -60), [1, 2, 3]],
    [text.replace('"192.0.2.2"', '"192.0.2.2'), [1, 3, 4]],
    [text.replace('\n', '\n\0\0\0\0\n[1,2],\n"x"\n'), [1, 2, 3, 4]],
  ];
  for (const [damaged, left] of damages) {
    await writeFile(path, damaged);
    const { claims, problems } = await readClaimFile(path);
    t.deepEqual(
      claims,
      left.map((last) => claim(last)),
    );
    t.is(problems.length, 1);
    t.regex(
      problems[0]?.message ?? '',
      new RegExp(`It is not JSON: .*; ${left.length} lines of it can be read$`, 's'),
    );
  }
});

test('ClaimFile restores a file that another process has changed', async (t) => {
  const { path, claims, kept, failures, tampered, file, put } = await fileOf(t);
  put(claim(1));
  put(claim(2));
  await until('they are kept', () => kept.length === 2);
  const isWhole = async () =>
    isDeepStrictEqual((await readClaimFile(path).catch(() => undefined))?.claims, [...claims.values()]);
  const damages: readonly (() => Promise<unknown>)[] = [
    () => rm(path),
    async () => rmSync(dirname(path), { recursive: true }),
    () => truncate(path, 60),
    () => writeFile(path, 'nonsense'),
  ];
  for (const [at, carryOut] of damages.entries()) {
    await carryOut();
    await until('it is told', () => tampered.length > at);
    t.true(await isWhole());
  }
  // Where it cannot be written now it is as soon as it can, and said once it is.
  // In one go: between the two the file would be written again, with its folder.
  rmSync(dirname(path), { recursive: true });
  writeFileSync(dirname(path), '');
  await until('it is tried', () => failures.length === 1);
  await rm(dirname(path));
  await until('it is told', () => tampered.length === damages.length + 1);
  t.true(await isWhole());
  t.is(file.fault, '');
  // An unchanged file is not written, nor the file of an agent that has ended.
  const { mtimeMs } = await stat(path);
  await delay(50);
  t.deepEqual([(await stat(path)).mtimeMs, tampered.length], [mtimeMs, damages.length + 1]);
  await file.close();
  await rm(path);
  await delay(50);
  t.deepEqual(await readClaimFile(path), { claims: [], problems: [] });
});

test('ClaimFile retries a failed write, and reports no claim as kept before it succeeds', async (t) => {
  const { path, file, kept, failures, put } = await fileOf(t);
  writeFileSync(dirname(path), 'in the way');
  put(claim(1));
  await until('it has been tried', () => failures.length === 1);
  await delay(50);
  t.deepEqual([kept, failures.length], [[], 1], 'A fault that lasts is told once');
  t.true(file.fault.startsWith(`Cannot write AddressClaims to "${path}": `), file.fault);
  rmSync(dirname(path));
  await until('it has been tried again', () => kept.length === 1);
  t.is(file.fault, '');
  await file.close();
});
