// Who may import what, and a checker of it. Pure: takes the files as path and text, gives the faults as lines.

import { dirname, join, normalize } from 'node:path';

export interface SourceFile {
  /** From the root of the repository: `agent/loop.ts`. */
  readonly path: string;
  readonly text: string;
}

interface Place {
  readonly name: string;
  readonly files: RegExp;
  /** Places whose files its own may import, besides one another. */
  readonly imports: readonly string[];
}

const VALUES = ['base', 'model'];
const LOW = ['host', ...VALUES];
/** Kubernetes objects as the agent reads them: every place that decides from objects may know their shapes. */
const OBJECTS = ['objects', 'certificates', 'protection', ...VALUES];

/**
 * From the top down; a file is in the first place that matches, and imports its own place and those listed.
 * The rooms of `haproxy` stand in a straight order; nothing outside them but the wiring and the command line imports them.
 */
const PLACES: readonly Place[] = [
  {
    name: 'main',
    files: /^agent\/(main|amphora)\.ts$/,
    imports: ['cli', 'wiring', 'loop', 'answer', 'sources', 'settings', 'report', 'report-answers', ...LOW],
  },
  {
    name: 'wiring',
    files: /^agent\/wiring\//,
    imports: [
      ...[
        'changes',
        'address-keeper',
        'addresses',
        'certificates',
        'sources',
        'state',
        'release',
        'release-mark',
        'report',
        'report-page',
        'report-answers',
        'report-cluster',
        'report-operating',
        'observers',
        'settings',
        'translate-gateways',
        'translate-ingresses',
        'translate-pools',
        'translate-services',
        'translate',
      ],
      ...[
        'writers',
        'objects',
        'dataplane',
        'haproxy',
        'haproxy-paths',
        'nftables',
        'nft-egress',
        'conntrackd',
        'announcer',
        'keepalived',
        'keepalived-options',
        'bird',
        'pair',
        'pair-values',
        'handover',
        'orders',
        'health',
        'metrics',
        'pushed',
        ...LOW,
      ],
      ...[
        'octavia-rest',
        'octavia-load-balancers',
        'octavia-store',
        'octavia-heartbeat',
        'octavia-machine',
        'octavia-network',
        'octavia-datagrams',
        'octavia-vrrp',
        'octavia-settings',
        'octavia-parts',
      ],
    ],
  },
  {
    name: 'cli',
    files: /^agent\/cli\//,
    imports: [
      ...[
        'state',
        'release',
        'address-keeper',
        'addresses',
        'certificates',
        'report-difference',
        'answer',
        'report-answers',
        'report-operating',
        'sources',
        'settings',
        'translate-gateways',
        'translate-ingresses',
        'translate-pools',
        'translate-services',
        'translate',
      ],
      ...[
        'haproxy-doors',
        'haproxy-config',
        'haproxy-routes',
        'haproxy-socket',
        'haproxy-process',
        'haproxy-paths',
        'nftables',
        'nft-egress',
        'nft-rules',
        'conntrackd',
        'writers',
        'manifests',
        'api',
        'objects',
        'octavia-settings',
        'octavia-rest',
      ],
      ...[
        'announcer',
        'bird',
        'keepalived-files',
        'keepalived-host',
        'keepalived-options',
        'pair',
        'pair-values',
        'orders',
        'peers',
        'octavia-report',
        ...LOW,
      ],
    ],
  },
  {
    name: 'loop',
    files: /^agent\/loop\.ts$/,
    imports: ['flow', 'changes', 'report', 'translate', 'dataplane', 'announcer', ...VALUES],
  },
  {
    name: 'flow',
    files: /^agent\/flow\.ts$/,
    imports: ['changes', 'address-keeper', 'translate', ...VALUES],
  },
  {
    name: 'answer',
    files: /^agent\/answer\//,
    imports: [
      'release',
      'release-mark',
      'sources',
      'report-page',
      'report-answers',
      'report-operating',
      'settings',
      'dataplane',
      'pair',
      'orders',
      'health',
      'metrics',
      'octavia-report',
      'octavia-load-balancers',
      'octavia-heartbeat',
      'octavia-settings',
      'octavia-parts',
      ...LOW,
    ],
  },
  {
    name: 'sources',
    files: /^agent\/sources\/|^agent\/settings\/current-settings\.ts$/,
    imports: [
      ...[
        'flow',
        'changes',
        'address-keeper',
        'report',
        'settings',
        'translate',
        'dataplane',
        'standing',
        'health',
        'metrics',
      ],
      ...['api', 'access', 'manifests', ...LOW, ...OBJECTS],
    ],
  },
  // What the commands and the page show, what the cluster gets, and what they are made from.
  {
    name: 'report-page',
    files: /^agent\/report\/page\//,
    imports: ['report-answers', 'report-operating', 'dataplane', 'health', ...VALUES],
  },
  {
    name: 'report-answers',
    files: /^agent\/report\/answers\//,
    imports: [
      ...['changes', 'address-keeper', 'release-mark', 'report-cluster', 'report-operating', 'observers'],
      ...['translate-services', 'dataplane', 'announcer', 'pair', 'health', 'api', ...OBJECTS],
    ],
  },
  // Two states compared.
  {
    name: 'report-difference',
    files: /^agent\/report\/difference\//,
    imports: ['report-answers', ...VALUES],
  },
  {
    name: 'report-cluster',
    files: /^agent\/report\/cluster\//,
    imports: ['report-operating', 'observers', 'dataplane', 'writers', 'api', ...LOW, ...OBJECTS],
  },
  {
    name: 'report-operating',
    files: /^agent\/report\/operating\//,
    imports: ['observers', 'dataplane', 'announcer', 'health', ...VALUES],
  },
  { name: 'observers', files: /^agent\/report\/change-observers\.ts$/, imports: [] },
  {
    name: 'report',
    files: /^agent\/report\/[\w-]+\.ts$/,
    imports: ['changes', 'report-operating', 'observers', 'dataplane', ...LOW],
  },
  {
    name: 'address-keeper',
    files: /^agent\/address-keeper\//,
    imports: [
      ...['addresses', 'settings', 'translate-services', 'annotations', 'translate', 'writers', 'api'],
      ...[...LOW, ...OBJECTS],
    ],
  },
  { name: 'release', files: /^agent\/release\//, imports: ['release-mark', ...LOW, ...OBJECTS] },
  { name: 'release-mark', files: /^agent\/state\/release-mark\.ts$/, imports: [...LOW] },
  { name: 'state', files: /^agent\/state\//, imports: ['translate-services', ...LOW] },
  { name: 'changes', files: /^agent\/changes\.ts$/, imports: [] },
  {
    name: 'settings',
    files: /^agent\/settings\//,
    imports: ['translate', 'annotations', 'addresses', 'protection', ...LOW],
  },

  // The announcer moves addresses; the pair decides which host has them, through the announcer's contract.
  {
    name: 'pair',
    files: /^agent\/pair\/(pair|bgp-host|host-links)\.ts$/,
    imports: [
      ...['standing', 'handover', 'orders', 'peers', 'pair-values', 'release-mark', 'announcer', 'dataplane'],
      ...LOW,
    ],
  },
  {
    name: 'standing',
    files: /^agent\/pair\/standing\//,
    imports: ['orders', 'peers', 'pair-values', 'announcer', 'dataplane', ...LOW],
  },
  { name: 'handover', files: /^agent\/pair\/handover\//, imports: ['peers', 'pair-values', ...LOW] },
  { name: 'orders', files: /^agent\/pair\/orders\//, imports: ['pair-values', ...LOW] },
  { name: 'peers', files: /^agent\/pair\/peers\//, imports: ['pair-values', 'release-mark', ...LOW] },
  { name: 'pair-values', files: /^agent\/pair\/[\w-]+\.ts$/, imports: [...LOW] },
  {
    name: 'keepalived',
    files: /^agent\/vips\/keepalived\/(?!options|paths)[\w-]+\.ts$/,
    imports: [
      ...['keepalived-files', 'keepalived-states', 'keepalived-host', 'keepalived-process'],
      ...['keepalived-options', 'announcer', 'daemon', ...LOW],
    ],
  },
  {
    name: 'keepalived-files',
    files: /^agent\/vips\/keepalived\/files\//,
    imports: ['keepalived-process', 'keepalived-options', 'announcer', ...LOW],
  },
  {
    name: 'keepalived-states',
    files: /^agent\/vips\/keepalived\/states\//,
    imports: ['keepalived-process', 'announcer', ...LOW],
  },
  {
    name: 'keepalived-host',
    files: /^agent\/vips\/keepalived\/host\//,
    imports: ['keepalived-process', 'keepalived-options', 'announcer', ...LOW],
  },
  {
    name: 'keepalived-process',
    files: /^agent\/vips\/keepalived\/process\//,
    imports: ['keepalived-options', 'announcer', 'daemon', ...LOW],
  },
  {
    name: 'keepalived-options',
    files: /^agent\/vips\/keepalived\/(options|paths)\.ts$/,
    imports: ['announcer', ...LOW],
  },
  {
    name: 'bird',
    files: /^agent\/vips\/bird\//,
    imports: ['announcer', 'daemon', ...LOW],
  },
  { name: 'announcer', files: /^agent\/vips\//, imports: [...LOW] },

  // HAProxy: a configuration, a control socket, what it counts, the program, its workers.
  {
    name: 'haproxy',
    files:
      /^agent\/haproxy\/(dataplane|dataplane-status|after-apply|parts|file-parts|watch-parts|outcome|options|write-certificates|member-cookie)\.ts$/,
    imports: [
      ...[
        'haproxy-ejection',
        'haproxy-worker',
        'haproxy-process',
        'haproxy-instance',
        'haproxy-stats',
        'haproxy-doors',
        'haproxy-paths',
        'haproxy-socket',
        'haproxy-config',
        'haproxy-routes',
      ],
      ...['dataplane', ...LOW],
    ],
  },
  {
    name: 'haproxy-ejection',
    files: /^agent\/haproxy\/ejection\//,
    imports: [
      ...['haproxy-worker', 'haproxy-stats', 'haproxy-doors', 'haproxy-paths', 'haproxy-socket'],
      ...['haproxy-config', ...LOW],
    ],
  },
  {
    name: 'haproxy-worker',
    files: /^agent\/haproxy\/worker\//,
    imports: [
      ...[
        'haproxy-instance',
        'haproxy-stats',
        'haproxy-doors',
        'haproxy-paths',
        'haproxy-socket',
        'haproxy-config',
        'haproxy-routes',
        'daemon',
      ],
      ...['dataplane', ...LOW],
    ],
  },
  {
    name: 'haproxy-process',
    files: /^agent\/haproxy\/process\//,
    imports: ['haproxy-socket', 'haproxy-doors', 'haproxy-paths', 'daemon', ...LOW],
  },
  // The process of one HAProxy, whatever text it boots.
  {
    name: 'haproxy-instance',
    files: /^agent\/haproxy\/instance\//,
    imports: ['haproxy-socket', 'daemon', ...LOW],
  },
  {
    name: 'haproxy-stats',
    files: /^agent\/haproxy\/stats\//,
    imports: ['haproxy-socket', 'haproxy-routes', 'dataplane', ...LOW],
  },
  { name: 'haproxy-paths', files: /^agent\/haproxy\/paths\.ts$/, imports: [] },
  {
    name: 'haproxy-doors',
    files: /^agent\/haproxy\/[\w-]+\.ts$/,
    imports: ['haproxy-paths', 'haproxy-socket', 'haproxy-config', 'haproxy-routes', 'dataplane', ...LOW],
  },
  {
    name: 'haproxy-socket',
    files: /^agent\/haproxy\/socket\//,
    imports: ['haproxy-config', 'haproxy-routes', 'dataplane', ...LOW],
  },
  {
    name: 'haproxy-config',
    files: /^agent\/haproxy\/config\//,
    imports: ['haproxy-routes', 'haproxy-paths', 'daemon', ...LOW],
  },
  { name: 'haproxy-routes', files: /^agent\/haproxy\/routes\//, imports: [...LOW] },
  // HAProxy with a text that its author pushed.
  {
    name: 'pushed',
    files: /^agent\/pushed\//,
    imports: ['haproxy-socket', 'haproxy-instance', 'daemon', ...LOW],
  },
  // An amphora: what Octavia's controller sends, and the parts that carry it out.
  {
    name: 'octavia-report',
    files: /^agent\/octavia\/report\//,
    imports: [
      ...['octavia-load-balancers', 'octavia-heartbeat', 'octavia-settings', 'octavia-parts', 'health'],
      ...VALUES,
    ],
  },
  {
    name: 'octavia-rest',
    files: /^agent\/octavia\/rest\//,
    imports: [...['octavia-load-balancers', 'octavia-machine', 'octavia-settings', 'octavia-parts', ...LOW]],
  },
  {
    name: 'octavia-load-balancers',
    files: /^agent\/octavia\/load-balancers\//,
    imports: ['pushed', 'octavia-heartbeat', 'octavia-store', 'octavia-text', ...LOW],
  },
  { name: 'octavia-store', files: /^agent\/octavia\/store\//, imports: ['pushed', ...LOW] },
  { name: 'octavia-machine', files: /^agent\/octavia\/machine\//, imports: [...LOW] },
  {
    name: 'octavia-heartbeat',
    files: /^agent\/octavia\/heartbeat\//,
    imports: ['pushed', 'octavia-settings', 'octavia-text', 'octavia-parts', ...LOW],
  },
  { name: 'octavia-settings', files: /^agent\/octavia\/settings\//, imports: [...LOW] },
  { name: 'octavia-text', files: /^agent\/octavia\/text\//, imports: ['pushed', ...VALUES] },
  {
    name: 'octavia-network',
    files: /^agent\/octavia\/network\//,
    imports: ['octavia-parts', ...LOW],
  },
  {
    name: 'octavia-datagrams',
    files: /^agent\/octavia\/datagrams\//,
    imports: ['octavia-parts', 'nftables', 'nft-checks', 'dataplane', 'translate-services', ...LOW],
  },
  {
    name: 'octavia-vrrp',
    files: /^agent\/octavia\/vrrp\//,
    imports: ['octavia-parts', 'daemon', ...LOW],
  },
  { name: 'octavia-parts', files: /^agent\/octavia\/parts\.ts$/, imports: [] },
  // The kernel, by nftables; conntrackd copies its flows to the peer.
  {
    name: 'conntrackd',
    files: /^agent\/nftables\/conntrackd\//,
    imports: ['nftables', 'nft-rules', 'daemon', 'dataplane', ...LOW],
  },
  {
    name: 'nft-egress',
    files: /^agent\/nftables\/egress\//,
    imports: ['nftables', 'nft-table', 'nft-flows', 'nft-rules', 'dataplane', ...LOW],
  },
  {
    name: 'nftables',
    files: /^agent\/nftables\/[\w-]+\.ts$/,
    imports: ['nft-table', 'nft-checks', 'nft-flows', 'nft-rules', 'dataplane', ...LOW],
  },
  { name: 'nft-table', files: /^agent\/nftables\/table\//, imports: ['nft-rules', ...LOW] },
  { name: 'nft-checks', files: /^agent\/nftables\/checks\//, imports: ['nft-rules', 'dataplane', ...LOW] },
  { name: 'nft-flows', files: /^agent\/nftables\/flows\//, imports: ['nft-rules', ...LOW] },
  { name: 'nft-rules', files: /^agent\/nftables\/rules\//, imports: VALUES },

  { name: 'dataplane', files: /^agent\/dataplane\//, imports: VALUES },

  // From objects to load balancers: pure.
  {
    name: 'translate-gateways',
    files: /^agent\/translate\/gateway\//,
    imports: [
      'translate-pools',
      'translate-routes',
      'translate-services',
      'translate',
      'annotations',
      ...OBJECTS,
    ],
  },
  {
    name: 'translate-ingresses',
    files: /^agent\/translate\/ingress\//,
    imports: ['translate-pools', 'translate-routes', 'translate-services', 'translate', ...OBJECTS],
  },
  {
    name: 'translate-pools',
    files: /^agent\/translate\/pool\//,
    imports: ['translate-routes', 'translate-services', 'translate', 'annotations', ...OBJECTS],
  },
  {
    name: 'translate-routes',
    files: /^agent\/translate\/routes\//,
    imports: ['translate-services', 'translate', 'annotations', ...OBJECTS],
  },
  {
    name: 'translate-services',
    files: /^agent\/translate\/service\//,
    imports: ['translate', 'annotations', ...OBJECTS],
  },
  { name: 'annotations', files: /^agent\/translate\/annotations\//, imports: ['protection', ...VALUES] },
  { name: 'translate', files: /^agent\/translate\//, imports: ['annotations', 'protection', ...VALUES] },
  { name: 'addresses', files: /^agent\/addresses\//, imports: OBJECTS },
  // What protects: the list and its rule.
  { name: 'protection', files: /^agent\/protection\//, imports: VALUES },

  // Kubernetes: objects, the way in, what follows them, what reads them from files, what writes them.
  { name: 'writers', files: /^agent\/kubernetes\/writers\//, imports: ['api', ...LOW, ...OBJECTS] },
  { name: 'manifests', files: /^agent\/kubernetes\/manifests\//, imports: [...LOW, ...OBJECTS] },
  { name: 'api', files: /^agent\/kubernetes\/api\//, imports: ['access', ...LOW, ...OBJECTS] },
  { name: 'access', files: /^agent\/kubernetes\/access\//, imports: LOW },
  { name: 'objects', files: /^agent\/kubernetes\//, imports: ['certificates', 'protection', ...VALUES] },
  { name: 'certificates', files: /^agent\/certificates\//, imports: VALUES },

  { name: 'metrics', files: /^health\/metrics\//, imports: ['scrape', ...VALUES] },
  { name: 'scrape', files: /^health\/scrape\//, imports: VALUES },
  { name: 'health', files: /^health\//, imports: ['metrics', 'scrape', ...LOW] },
  { name: 'daemon', files: /^agent\/host\/daemon\//, imports: [...LOW] },
  { name: 'host', files: /^agent\/host\//, imports: VALUES },
  { name: 'base', files: /^agent\/base\//, imports: ['model'] },
  { name: 'model', files: /^agent\/model\//, imports: [] },
];

const NAMES_THAT_SAY_NOTHING = /(^|\/)(utils?|helpers?|types|index|common|misc)\.ts$/;

/** A timer of Node's, which a test cannot replace by a fake clock. */
const TIMERS = /\bset(?:Timeout|Interval)\(|\bset(?:Timeout|Interval)\b.*'node:timers/;

/** Every import that goes against the table, every cycle, every package with two doors, every empty name, every timer outside the clock. */
export function importFaults(files: readonly SourceFile[]): string[] {
  const faults: string[] = [];
  const graph = new Map<string, string[]>();
  const doors = new Map<string, string[]>();
  for (const { path, text } of files) {
    if (TIMERS.test(text) && path !== 'agent/base/clock.ts')
      faults.push(`${path}: Only agent/base/clock.ts has timers: take a Clock, or its sleep()`);
    if (NAMES_THAT_SAY_NOTHING.test(path)) faults.push(`${path}: The name does not say what the file is`);
    const from = placeOf(path);
    if (from === undefined) faults.push(`${path}: The file has no place in the table`);
    const targets: string[] = [];
    for (const specifier of importsOf(text)) {
      if (specifier.startsWith('node:')) continue;
      if (!specifier.startsWith('.')) {
        const name = packageOf(specifier);
        doors.set(name, [...new Set([...(doors.get(name) ?? []), path])]);
        if (from?.name === 'model') faults.push(`${path}: The model imports nothing, but it imports ${name}`);
        continue;
      }
      const target = normalize(join(dirname(path), specifier));
      targets.push(target);
      const to = placeOf(target);
      if (from === undefined || to === undefined || from === to || from.imports.includes(to.name)) continue;
      faults.push(`${path}: ${from.name} must not import ${to.name}, but it imports ${target}`);
    }
    graph.set(path, targets);
  }
  for (const [name, paths] of doors) {
    if (paths.length > 1)
      faults.push(`${name}: A package is imported in one file only, but ${paths.sort().join(' and ')} do`);
  }
  return [...faults, ...cyclesOf(graph)];
}

/** Names of places that no file is in. */
export function placesWithoutFiles(files: readonly SourceFile[]): string[] {
  const used = new Set(files.map(({ path }) => placeOf(path)));
  return PLACES.filter((place) => !used.has(place)).map(({ name }) => name);
}

/** What a file imports or exports on, types as well; Biome's format keeps such statements regular. */
export function importsOf(text: string): string[] {
  const code = text.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
  const statements =
    /^\s*(?:import|export)\b(?:[\w\s{},*$]*?\bfrom)?\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/gm;
  return [...code.matchAll(statements)].map(([, fixed, dynamic]) => fixed ?? dynamic ?? '');
}

function placeOf(path: string): Place | undefined {
  return PLACES.find(({ files }) => files.test(path));
}

function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}

function cyclesOf(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const cycles: string[] = [];
  const done = new Set<string>();
  const visit = (path: string, above: readonly string[]) => {
    const at = above.indexOf(path);
    if (at >= 0) cycles.push(`${path}: Imports go round: ${[...above.slice(at), path].join(' → ')}`);
    if (at >= 0 || done.has(path)) return;
    for (const target of graph.get(path) ?? []) visit(target, [...above, path]);
    done.add(path);
  };
  for (const path of graph.keys()) visit(path, []);
  return cycles;
}
