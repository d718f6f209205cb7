// Settings for configurations that tests render.

import type { RenderSettings } from '../../../agent/haproxy/config/render-context.ts';

export const RENDER_SETTINGS = {
  maxConnectionsPerNamespace: 0,
  threads: 1,
  hardStopAfter: 1_000,
  maxOldWorkers: 4,
  haproxyUser: '',
  haproxyGroup: '',
  routeMetrics: false,
  connectionLogTarget: { kind: 'journald' },
  connectionLogFormat: 'json',
} as const satisfies RenderSettings;
