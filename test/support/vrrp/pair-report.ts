// The report of the other agent of a pair whose host has no fault; tests change single fields.

import type { PairReport } from '../../../agent/pair/peers/report.ts';
import { noArrivals, noAuthReport, noHandover, noVips } from '../../../agent/pair/peers/report.ts';
import { nothingReleased } from '../../../agent/state/release-mark.ts';

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
  announced: [],
  unannounced: 0,
  vips: noVips,
  arrivals: noArrivals,
  announcesAll: false,
  hosts: '',
  isBlind: false,
  released: nothingReleased,
  vrrpAuth: noAuthReport,
};
