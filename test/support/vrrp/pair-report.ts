// What the other agent of a pair tells while nothing is the matter with its host; tests say what is otherwise.

import type { PairReport } from '../../../agent/pair/peers/report.ts';
import { noHandover } from '../../../agent/pair/peers/report.ts';

export const pairReport: PairReport = {
  version: '1.0.0',
  instance: '0123456789abcdef',
  roles: {},
  priorities: {},
  lowered: [],
  synced: true,
  loadBalancers: 0,
  pending: 0,
  model: '0'.repeat(32),
  running: '0'.repeat(32),
  handover: noHandover,
};
