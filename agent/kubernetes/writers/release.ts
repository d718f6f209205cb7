// Removes what agents have left in the cluster after the last one has stopped: the finalizer, addresses and conditions of
// Services, and the agent's part of other statuses. What other controllers have written stays.
// Uses the network only through the client that it gets.

import { secondTime } from '../../base/clock.ts';
import { HeadgateError } from '../../base/errors.ts';
import { parseJson } from '../../base/parse-json.ts';
import { isMapping } from '../../base/validate.ts';
import type { ObjectStatus, StatusKind, StatusSubject } from '../../model/object-status.ts';
import { refusalText } from '../api/api-answer.ts';
import type { ApiStreams, KubernetesApi } from '../api/kubernetes-api.ts';
import { Refusal, ResourceClient } from '../api/resource-client.ts';
import { FIELD_MANAGER, readCurrentObject } from '../current-object.ts';
import { readCurrentService } from '../current-service.ts';
import { KINDS, type Kind } from '../kinds.ts';
import { isStatusKind, STATUS_KINDS } from '../status-kinds.ts';
import { objectStatusPatch } from './object-status-patch.ts';
import { servicePatch } from './service-patch.ts';

export interface ReleaseOptions {
  readonly api: KubernetesApi & ApiStreams;
  /** Empty for all. */
  readonly namespaces: readonly string[];
  /** Also from what has no namespace, such as a GatewayClass, and from BackendTLSPolicies, which routes of any namespace use. Default true. */
  readonly ofClasses?: boolean;
  /** Changes nothing. */
  readonly isDryRun: boolean;
  readonly now: () => Date;
}

export interface Released {
  /** `Service default/web`. */
  readonly object: string;
  /** Why it still has what an agent wrote; '' if it does not. */
  readonly fault: string;
}

const SILENCE_MS = 15_000;
/** Another writer was faster. */
const MAX_CONFLICTS = 5;

/** Errors: API_REFUSED, API_UNREACHABLE, API_CREDENTIALS. */
export async function* release(options: ReleaseOptions): AsyncGenerator<Released> {
  for (const kind of ['Service', ...STATUS_KINDS] as const) {
    const isOfClasses = KINDS[kind].isOfCluster || kind === 'BackendTLSPolicy';
    if (isOfClasses && options.ofClasses === false) continue;
    const places = KINDS[kind].isOfCluster || options.namespaces.length === 0 ? [''] : options.namespaces;
    for (const namespace of places)
      for (const json of await listed(options, kind, namespace)) {
        const one = await releaseOne(options, kind, json);
        if (one !== undefined) yield one;
      }
  }
}

/** Only objects of which an agent has left something. None if the API server does not have the kind. */
async function listed({ api, now }: ReleaseOptions, kind: Kind, namespace: string): Promise<unknown[]> {
  const found: unknown[] = [];
  const client = new ResourceClient(api, { ...KINDS[kind], namespace, labelSelector: '' });
  const onItem = (text: string): void => {
    const json = parseJson(text);
    if (patchOf(kind, json, now()) !== undefined) found.push(json);
  };
  try {
    await client.list({}, SILENCE_MS, onItem, () => found.splice(0));
  } catch (error) {
    if (error instanceof Refusal && error.status === 404) return [];
    throw error;
  }
  return found;
}

/** undefined if nothing of an agent is left in the object. */
async function releaseOne(
  { api, isDryRun, now }: ReleaseOptions,
  kind: Kind,
  json: unknown,
): Promise<Released | undefined> {
  const { namespace = '', name = '' } = isMapping(json) && isMapping(json.metadata) ? json.metadata : {};
  const object = `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`;
  const path = pathOf(kind, String(namespace), String(name));
  let current = json;
  for (let attempt = 0; attempt < MAX_CONFLICTS; attempt++) {
    const body = patchOf(kind, current, now());
    if (body === undefined) return attempt === 0 ? undefined : { object, fault: '' };
    if (isDryRun) return { object, fault: '' };
    const response = await api.request({
      method: 'PATCH',
      path: `${path}/status`,
      query: { fieldManager: FIELD_MANAGER },
      contentType: 'application/merge-patch+json',
      body,
    });
    if (response.status === 200 || response.status === 404) return { object, fault: '' };
    if (response.status !== 409) return { object, fault: refusalText(response) };
    const read = await api.request({ method: 'GET', path });
    if (read.status === 404) return { object, fault: '' };
    if (read.status !== 200) return { object, fault: refusalText(read) };
    current = read.body;
  }
  return { object, fault: 'Another program writes it again and again' };
}

/** undefined if nothing of an agent is left in the object. */
function patchOf(kind: Kind, json: unknown, now: Date): object | undefined {
  const time = secondTime(now.getTime());
  if (kind === 'Service') {
    const current = readCurrentService(json);
    if (current === undefined) return undefined;
    const released = { kind: 'release', uid: current.uid, isTornDown: true } as const;
    return servicePatch(current, released, { now: time, addFinalizer: false });
  }
  const current = readCurrentObject(json);
  if (current === undefined || !isStatusKind(kind) || !hasBeenWritten(json)) return undefined;
  return objectStatusPatch(current, emptyStatus(kind, current), time);
}

/** The agent's part of the status, without anything in it. */
function emptyStatus(kind: StatusKind, subject: StatusSubject): ObjectStatus {
  switch (kind) {
    case 'GatewayClass':
      return { ...subject, kind, conditions: [], supportedFeatures: [] };
    case 'Gateway':
      return {
        ...subject,
        kind,
        conditions: [],
        programmedBy: [],
        addresses: [],
        listeners: [],
        attachedListenerSets: 0,
      };
    case 'ListenerSet':
      return { ...subject, kind, conditions: [], programmedBy: [], listeners: [] };
    case 'BackendTLSPolicy':
      return { ...subject, kind, ancestors: [] };
    case 'Ingress':
      return { ...subject, kind, addresses: [], ports: [], programmedBy: [], isWithdrawn: true };
    default:
      return { ...subject, kind, parents: [] };
  }
}

/** An agent has written the status of the object, and no other controller all of it since. */
function hasBeenWritten(json: unknown): boolean {
  const fields = isMapping(json) && isMapping(json.metadata) ? json.metadata.managedFields : undefined;
  if (!Array.isArray(fields)) return false;
  return fields.some(
    (entry: unknown) => isMapping(entry) && entry.manager === FIELD_MANAGER && entry.subresource === 'status',
  );
}

function pathOf(kind: Kind, namespace: string, name: string): string {
  const { apiVersion, plural } = KINDS[kind];
  const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const place = namespace === '' ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${group}${place}/${plural}/${encodeURIComponent(name)}`;
}

/** The agent that writes to the cluster now, by its Lease; '' if none does. Errors: as `release()`. */
export async function writingAgent(
  api: KubernetesApi,
  lease: { readonly namespace: string; readonly name: string },
): Promise<string> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(lease.namespace)}/leases/${lease.name}`;
  const response = await api.request({ method: 'GET', path });
  if (response.status === 404) return '';
  if (response.status !== 200)
    throw new HeadgateError('API_REFUSED', `Cannot read the Lease: ${refusalText(response)}`);
  const spec = isMapping(response.body) && isMapping(response.body.spec) ? response.body.spec : {};
  const { holderIdentity, renewTime, leaseDurationSeconds } = spec;
  if (typeof holderIdentity !== 'string' || holderIdentity === '') return '';
  const renewed = Date.parse(String(renewTime));
  // By the clock of the API server; the agent's may differ by a moment.
  const ofServer = Date.parse(String(response.headers.date ?? ''));
  const now = Number.isNaN(ofServer) ? Date.now() : ofServer;
  const isOver = now > renewed + Number(leaseDurationSeconds) * 1_000;
  return isOver ? '' : holderIdentity;
}
