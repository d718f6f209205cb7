import test from 'ava';
import { type FileObjects, FilePrecedence } from '../../../../agent/kubernetes/manifests/file-precedence.ts';
import type { KubernetesObject } from '../../../../agent/kubernetes/objects.ts';

const identities = (kind: string, count: number) =>
  Array.from({ length: count }, (_, at) => `${kind} default/${at}`);

/** A file of these, of which some have just gone from it. */
function file(path: string, all: readonly string[], gone: readonly string[] = []) {
  const objects = new Map(all.map((identity) => [identity, {} as KubernetesObject]));
  const loss = { since: 0, doubted: false };
  return { path, objects, missing: new Map(gone.map((identity) => [identity, loss])) } satisfies FileObjects;
}

function precedenceOf(...files: readonly FileObjects[]): FilePrecedence {
  const precedence = new FilePrecedence();
  for (const each of files) for (const identity of each.objects.keys()) precedence.update(identity, each);
  return precedence;
}

test('isMostMissing() is true for more than half of at least `many` objects', (t) => {
  const all = identities('Service', 20);
  t.false(precedenceOf(file('a', all, all.slice(0, 10))).isMostMissing(10));
  t.true(precedenceOf(file('a', all, all.slice(0, 11))).isMostMissing(10));
  t.false(precedenceOf(file('a', all, all.slice(0, 11))).isMostMissing(21));
});

test('isMostMissing() counts each kind separately', (t) => {
  const [few, many] = [identities('Service', 10), identities('EndpointSlice', 100)];
  t.true(precedenceOf(file('a', [...few, ...many], few)).isMostMissing(10));
});

test('isMostMissing() ignores objects that another file has, and removed ones', (t) => {
  const all = identities('Service', 10);
  const [from, to] = [file('a', all, all), file('b', all)];
  t.false(precedenceOf(from, to).isMostMissing(1));
  const precedence = precedenceOf(from);
  t.true(precedence.isMostMissing(1));
  from.objects.clear();
  for (const identity of all) precedence.update(identity, from);
  t.false(precedence.isMostMissing(1));
});
