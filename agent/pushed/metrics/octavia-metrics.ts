// Turns the text of HAProxy's own metrics into that of an amphora of Octavia: other names and labels, some other words, and
// only the metrics that Octavia shows. Pure.

import { HELP, type MetricKind, RENAMED, SHOWN } from './metric-names.ts';

/** The load of the machine, percent. */
export interface MachineLoad {
  readonly cpu: number;
  readonly memory: number;
}

const KINDS: Readonly<Record<MetricKind, string>> = {
  process: 'loadbalancer',
  frontend: 'listener',
  backend: 'pool',
  server: 'member',
};
/** Lines that name one of the sections by which the metrics themselves are read. */
const INTERNAL = 'prometheus-exporter';
const LINE = /^(# (?:HELP|TYPE) )?haproxy_(process|frontend|backend|server)_([a-z_]+)([ {].*)$/;

/** The lines that are not HAProxy's. */
export function machineMetrics({ cpu, memory }: MachineLoad): string {
  return `# HELP octavia_loadbalancer_cpu Load balancer CPU utilization (percentage).
# TYPE octavia_loadbalancer_cpu gauge
octavia_loadbalancer_cpu ${cpu.toFixed(1)}
# HELP octavia_loadbalancer_memory Load balancer memory utilization (percentage).
# TYPE octavia_loadbalancer_memory gauge
octavia_loadbalancer_memory ${memory.toFixed(1)}
`;
}

/** Takes whole lines and gives those that Octavia shows. */
export function octaviaMetrics(lines: string): string {
  let shown = '';
  for (const line of lines.split('\n')) {
    const found = line.includes(INTERNAL) ? undefined : shownAs(line);
    if (found !== undefined) shown += `${found}\n`;
  }
  return shown;
}

function shownAs(line: string): string | undefined {
  const [, comment = '', word = '', name = '', rest = ''] = LINE.exec(line) ?? [];
  const kind = word as MetricKind;
  if (!SHOWN[kind]?.has(name)) return undefined;
  const own = `octavia_${RENAMED.get(`${kind}_${name}`) ?? named(kind, name)}`;
  if (comment === '# HELP ') return `${comment}${own} ${HELP.get(`${kind}_${name}`) ?? rest.slice(1)}`;
  return `${comment}${own}${rest.startsWith('{') ? labelled(kind, rest) : rest}`;
}

function named(kind: MetricKind, name: string): string {
  return kind === 'process' && name.startsWith('pool_') ? `memory_${name}` : `${KINDS[kind]}_${name}`;
}

function labelled(kind: MetricKind, labels: string): string {
  const proxy = kind === 'frontend' ? 'listener=' : 'pool=';
  const renamed = labels.replace('proxy=', proxy);
  return kind === 'server' ? renamed.replace('server=', 'member=') : renamed;
}
