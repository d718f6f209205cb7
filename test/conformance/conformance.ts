// What Kubernetes asks of a load balancer: all sections, in the order of docs/conformance.md.

import { ADDRESSES } from './addresses.ts';
import { API, WHOLE } from './api.ts';
import { ENDPOINT_SLICES, NODES } from './endpoints.ts';
import type { Section } from './row.ts';
import { SERVICE, SERVICE_STATUS } from './service.ts';

export const conformance: readonly Section[] = [
  SERVICE,
  SERVICE_STATUS,
  ENDPOINT_SLICES,
  NODES,
  API,
  ADDRESSES,
  WHOLE,
];
