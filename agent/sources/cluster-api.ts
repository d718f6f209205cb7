// The API server of the settings: its client, and its source of objects.

import { join } from 'node:path';
import type { ApiMetrics } from '../../health/metrics/api-metrics.ts';
import type { ClaimHome } from '../address-keeper/stored-claims.ts';
import { HeadgateError, messageOf } from '../base/errors.ts';
import { RecurringFault } from '../base/recurring-fault.ts';
import { version } from '../base/version.ts';
import type { Log } from '../host/log.ts';
import type { CredentialsLocation } from '../kubernetes/access/credentials.ts';
import { type ApiReceivers, ApiSource } from '../kubernetes/api/api-source.ts';
import { CertificateSource, type CertificateSourceOptions } from '../kubernetes/api/certificate-source.ts';
import { ApiClient } from '../kubernetes/api/client.ts';
import { PasswordSource } from '../kubernetes/api/password-source.ts';
import { kindsOf, selectsNamespaces } from '../kubernetes/api/reflected-kinds.ts';
import type { ReflectorObserver } from '../kubernetes/api/reflector-terms.ts';
import type { Settings } from '../settings/settings.ts';
import { ListLines } from './list-lines.ts';

/** undefined if the settings name no cluster. Errors: SETTINGS_INVALID if they name two. */
export function apiClient(settings: Settings): ApiClient | undefined {
  const credentials = placeOf(settings);
  return credentials && new ApiClient({ credentials, servers: settings.apiServers, version });
}

export function apiSource(
  api: ApiClient,
  settings: Settings,
  on: Pick<ApiReceivers, 'onChange' | 'onService' | 'onObject' | 'onReports'>,
  metrics: ApiMetrics,
  log: Log,
): ApiSource {
  const { namespaces, pools, serviceSelector, stateDir } = settings;
  const forPools = pools.some(selectsNamespaces);
  return new ApiSource({
    api,
    scope: { kinds: kindsOf(settings), namespaces, serviceSelector, forPools },
    snapshot: { path: join(stateDir, 'api', 'objects.json') },
    receivers: {
      ...on,
      onOtherVersions: (kind, versions) =>
        log.info(
          'The API server has a kind only in versions that the agent does not read: it is not served',
          {
            kind,
            versions: versions.join(', '),
          },
        ),
      onFailure: (error) =>
        log.warn('The snapshot of the API server has a fault; traffic is not affected', {
          error: messageOf(error),
        }),
    },
    observer: observerOf(metrics, log),
  });
}

export function certificateSource(
  api: ApiClient,
  { secretNamespaces }: Settings,
  on: Pick<CertificateSourceOptions, 'onChange' | 'isRead'>,
  metrics: ApiMetrics,
  log: Log,
): CertificateSource {
  const observer = observerOf(metrics, log);
  return new CertificateSource({ api, namespaces: secretNamespaces, ...on, observer });
}

export function passwordSource(
  api: ApiClient,
  { leaseNamespace: namespace }: Settings,
  onChange: () => void,
  metrics: ApiMetrics,
  log: Log,
): PasswordSource {
  return new PasswordSource({ api, namespace, onChange, observer: observerOf(metrics, log) });
}

/** Where AddressClaims are stored. `api`: undefined if there is no cluster. */
export function claimHome(api: ApiSource | undefined): ClaimHome {
  if (api === undefined) return 'file';
  if (!api.isSynced) return 'unknown';
  const lacks = [api.lackOf('AddressClaim'), api.lackOf('AddressPool')];
  // Another agent may have given addresses that this agent cannot see.
  if (lacks.includes('forbidden')) return 'unknown';
  return lacks[0] === 'unknown' ? 'file' : 'cluster';
}

function placeOf({ kubeconfig, inCluster }: Settings): CredentialsLocation | undefined {
  if (kubeconfig !== '' && inCluster) {
    const message = 'Cannot use both "kubeconfig" and "inCluster": each names a cluster';
    throw new HeadgateError('SETTINGS_INVALID', message, { retry: 'never' });
  }
  if (kubeconfig !== '') return { kind: 'Kubeconfig', path: kubeconfig };
  return inCluster ? { kind: 'InCluster' } : undefined;
}

/** What fails if no kind can be read. */
const SERVER = 'API server';

function observerOf(metrics: ApiMetrics, log: Log): ReflectorObserver {
  const fault = new RecurringFault({
    onReport: (error, failures) =>
      log.warn('Cannot read from the API server; traffic is not affected', { error, failures }),
    onOver: () => log.info('The API server can be read again'),
  });
  const lists = new ListLines(log);
  const worked = (kind: string): void => {
    for (const part of [SERVER, kind]) fault.worked(part);
  };
  return {
    onEvent: (kind, type) => {
      worked(kind);
      metrics.apiEvent(kind, type);
    },
    onList: (kind, reason, objects, milliseconds) => {
      worked(kind);
      metrics.apiList(kind, reason);
      lists.listed(kind, reason, objects, milliseconds);
    },
    onWatchEnd: (kind, end) => {
      metrics.apiWatchEnded(kind, end);
      log.debug('A watch has ended', { kind, reason: end });
    },
    onDoubt: (kind, missing, of) =>
      log.warn('A list lacks most objects: they count until a second list confirms the loss', {
        kind,
        missing,
        of,
      }),
    onFailure: (kind, error) => {
      const text = messageOf(error);
      log.debug('Cannot read a kind from the API server', { kind, error: text });
      fault.failed(error.code === 'API_UNREACHABLE' ? SERVER : kind, error.code, text);
    },
  };
}
