// The two states that `headgate plan` compares: of folders, of a folder and a patch, or of a cluster and a folder over it.

import { cpSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { Cluster } from '../../kubernetes/cluster.ts';
import type { KubernetesObject } from '../../kubernetes/objects.ts';
import type { Settings } from '../../settings/settings.ts';
import { type ReadObjects, type ReadState, readManifests, translated } from '../desired.ts';
import { clusterObjects, namedObjects } from './cluster-objects.ts';
import { patchFolder } from './patch-folder.ts';
import { type StandIns, standIns } from './stand-ins.ts';

export interface ComparedStates {
  readonly before: ReadState;
  readonly after: ReadState;
  /** By owner: the address by which it is compared, because it has none. */
  readonly standIns: StandIns;
}

/** Errors: USAGE, SETTINGS_INVALID if a folder is missing. */
export async function foldersCompared(
  before: readonly string[],
  after: readonly string[],
  settings: Settings,
): Promise<ComparedStates> {
  return compared(
    await readManifests(new Cluster(), before),
    await readManifests(new Cluster(), after),
    settings,
  );
}

/** `patch`: the text of a unified diff of files in the folder. Errors: USAGE if it does not fit. */
export async function folderPatched(
  place: string,
  patch: string,
  settings: Settings,
): Promise<ComparedStates> {
  const copy = mkdtempSync(join(tmpdir(), 'headgate-plan-'));
  try {
    const isFile = statSync(place).isFile();
    cpSync(place, isFile ? join(copy, basename(place)) : copy, { recursive: true });
    patchFolder(copy, patch);
    const states = await foldersCompared([place], [copy], settings);
    const from = isFile ? dirname(place) : place;
    const problems = states.after.problems.map((each) => ({
      ...each,
      message: each.message.replaceAll(copy, from),
    }));
    return { ...states, after: { ...states.after, problems } };
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/** The objects of the API server, and those with the ones of the folders instead. Errors: those of the API, SETTINGS_INVALID. */
export async function clusterCompared(
  places: readonly string[],
  settings: Settings,
): Promise<ComparedStates> {
  const { upserted, problems } = await clusterObjects(settings);
  // A first translation says which Secrets and ConfigMaps are asked for.
  const asked = new Set<string>();
  const onAsked = (plural: string, key: string): void => void asked.add(`${plural} ${key}`);
  for (const over of [[], places]) await translated(await objectsOver(upserted, over), settings, { onAsked });
  const named = await namedObjects(settings, asked);
  const all = [...upserted, ...named.upserted];
  const states = await compared(await objectsOver(all, []), await objectsOver(all, places), settings);
  const unread = [...problems, ...named.problems, ...states.after.problems];
  return { ...states, after: { ...states.after, problems: unread } };
}

async function compared(
  before: ReadObjects,
  after: ReadObjects,
  settings: Settings,
): Promise<ComparedStates> {
  const [old, now] = [await translated(before, settings), await translated(after, settings)];
  const [ofOld, ofNow] = standIns(old.desired, now.desired);
  const again = async (objects: ReadObjects, state: ReadState, own: StandIns): Promise<ReadState> =>
    own.size === 0
      ? state
      : { ...(await translated(objects, settings, { standIns: own })), problems: state.problems };
  return {
    before: await again(before, old, ofOld),
    after: await again(after, now, ofNow),
    standIns: new Map([...ofOld, ...ofNow]),
  };
}

async function objectsOver(
  upserted: readonly KubernetesObject[],
  places: readonly string[],
): Promise<ReadObjects> {
  const cluster = new Cluster();
  const { owners } = cluster.apply({ upserted, removed: [] }, 'api');
  if (places.length === 0) return { cluster, owners, problems: [] };
  const read = await readManifests(cluster, places);
  return { ...read, owners: new Set([...owners, ...read.owners]) };
}
