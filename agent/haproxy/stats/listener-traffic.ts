// What each listener has counted, for the status page: from the series of its frontend, and of its pool for what only the
// way to the members shows. A pool of routes has no frontend: its own connections count. A listener with routes has no
// latency, its pools have it. Reads; changes nothing.

import type { ListenerTraffic } from '../../dataplane/status.ts';
import { positionOf } from './columns.ts';
import type { SeriesByKind } from './counter-totals.ts';
import type { Series } from './series.ts';

const TOTAL = positionOf('stot');
const OPEN = positionOf('scur');
const BYTES_IN = positionOf('bin');
const BYTES_OUT = positionOf('bout');
const ANSWERS_5XX = positionOf('hrsp_5xx');
const FAILED_CONNECTIONS = positionOf('econ');
const RETRIES = positionOf('wretr');
const REDISPATCHES = positionOf('wredis');
const RESPONSE_MS = positionOf('rtime');

export function* listenerTraffic({
  listener,
  pool,
}: Pick<SeriesByKind, 'listener' | 'pool'>): Generator<ListenerTraffic, void, void> {
  const pools = new Map<string, Series>();
  for (const series of pool) if (series.source !== undefined) pools.set(series.source.name, series);
  for (const series of listener) {
    if (series.source === undefined) continue;
    const { name } = series.source;
    yield trafficOf(name, series, pools.get(name));
    pools.delete(name);
  }
  for (const [name, series] of pools) yield trafficOf(name, series, series);
}

function trafficOf(name: string, front: Series, pool: Series | undefined): ListenerTraffic {
  const of = (series: Series | undefined, column: number): number => series?.values[column] ?? Number.NaN;
  const { isHttp, source } = front;
  return {
    name,
    total: of(front, TOTAL),
    open: of(front, OPEN),
    bytesIn: of(front, BYTES_IN),
    bytesOut: of(front, BYTES_OUT),
    errors: isHttp ? of(front, ANSWERS_5XX) : of(pool, FAILED_CONNECTIONS),
    retries: of(pool, RETRIES) + of(pool, REDISPATCHES),
    latency: isHttp && source?.routing === undefined ? of(pool, RESPONSE_MS) : Number.NaN,
  };
}
