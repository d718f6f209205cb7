// Arbitrary load balancers for property tests, including pairs with the same structure, as after an endpoint change.

import fc from 'fast-check';
import type { HealthMonitor, Listener, LoadBalancer, Member } from '../../../agent/model/load-balancer.ts';
import { labelsOfListener, memberName } from '../../../agent/model/names.ts';
import { stableId } from '../../../agent/translate/service/members.ts';

const members: fc.Arbitrary<readonly Member[]> = fc
  .uniqueArray(
    fc.record({
      address: fc.constantFrom('10.0.0.1', '10.0.0.2', '10.0.0.3', 'fd00::1'),
      port: fc.constantFrom(8080, 8081),
      weight: fc.constantFrom(16, 16, 0, 256),
      state: fc.constantFrom('ready', 'ready', 'drain'),
    }),
    { maxLength: 6, selector: ({ address, port }) => memberName(address, port) },
  )
  .map((list) =>
    list
      .map((each): Member => {
        const name = memberName(each.address, each.port);
        return { ...each, name, id: stableId(name), target: '' };
      })
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
  );

/** Lists of CIDRs that need one, two or three lines of the file. */
const cidrs: fc.Arbitrary<readonly string[]> = fc
  .constantFrom([0, 40], [41, 80], [81, 120])
  .chain(([minLength, maxLength]) =>
    fc
      .uniqueArray(fc.integer({ min: 0, max: 150 }), { minLength, maxLength } as fc.UniqueArrayConstraints<
        number,
        number
      >)
      .map((list) => list.map((each) => `198.18.${each}.0/24`).sort()),
  );

const monitors: fc.Arbitrary<HealthMonitor | undefined> = fc.option(
  fc.record({
    type: fc.constantFrom('tcp', 'http', 'https', 'tls', 'grpc', 'grpcs'),
    path: fc.constantFrom('/', '/healthz'),
    method: fc.constantFrom('GET', 'HEAD'),
    expectedCodes: fc.constantFrom('200', '200-399'),
    expectedBody: fc.constantFrom('', '"status": "UP"'),
    expectedBodyPattern: fc.constantFrom('', '^(OK|UP)$'),
    host: fc.constantFrom('', 'www.example.com:8080'),
    sni: fc.constantFrom('', 'www.example.com'),
    grpcService: fc.constantFrom('', 'shop.v1.Orders'),
    interval: fc.constantFrom(5_000, 6_000),
    timeout: fc.constantFrom(3_000, 4_000),
    rise: fc.integer({ min: 1, max: 50 }),
    fall: fc.integer({ min: 1, max: 50 }),
    port: fc.constantFrom(0, 8090),
  }),
  { nil: undefined },
);

/** Checks by connections or datagrams alone, every 5 s. */
export function plainMonitor(type: 'tcp' | 'udp'): HealthMonitor {
  const http = { path: '', method: '', expectedCodes: '', expectedBody: '', expectedBodyPattern: '' };
  const others = { host: '', sni: '', grpcService: '' };
  return { type, ...http, ...others, interval: 5_000, timeout: 3_000, rise: 2, fall: 3, port: 0 };
}

/** Removes the fields that a monitor of its type does not use. */
function asTheModelHasIt(monitor: HealthMonitor): HealthMonitor {
  const { type } = monitor;
  const http = { path: '', method: '', expectedCodes: '', expectedBody: '', expectedBodyPattern: '' };
  const isHttp = type === 'http' || type === 'https';
  const isGrpc = type === 'grpc' || type === 'grpcs';
  return {
    ...monitor,
    ...(!isHttp && http),
    ...(!isGrpc && { grpcService: '' }),
    ...(!isHttp && !isGrpc && { host: '' }),
    ...((type === 'tcp' || type === 'http' || type === 'grpc') && { sni: '' }),
  };
}

/** The parts of a listener that change only with a reload. */
const structures = fc.record({
  engine: fc.constantFrom('haproxy', 'haproxy', 'haproxy', 'kernel'),
  port: fc.constantFrom(80, 443),
  mode: fc.constantFrom('tcp', 'http'),
  tls: fc.constant(undefined),
  acceptProxy: fc.boolean(),
  connectionLimit: fc.constantFrom(0, 100),
  rateLimit: fc.constantFrom(0, 10),
  clientTimeout: fc.constantFrom(600_000, 60_000),
  log: fc.constantFrom('none', 'errors', 'all'),
  algorithm: fc.constantFrom('round-robin', 'least-connections', 'source-hash', 'random'),
  persistence: fc.constantFrom(0, 60),
  monitor: monitors,
  whenAllDown: fc.constantFrom('serve', 'reject'),
  memberTls: fc.constantFrom(undefined, { authority: undefined, serverName: 'web.example' }),
  proxyProtocol: fc.constantFrom('none', 'v1', 'v2'),
  memberConnectionLimit: fc.constantFrom(0, 100),
  timeouts: fc.record({
    connect: fc.constantFrom(1_000, 2_000),
    server: fc.constantFrom(600_000, 60_000),
    tunnel: fc.constantFrom(0, 3_600_000),
    queue: fc.constantFrom(5_000, 6_000),
  }),
});

type Structure = typeof structures extends fc.Arbitrary<infer T> ? T : never;

function listener(
  given: Structure,
  allowedCidrs: readonly string[],
  ofPool: readonly Member[],
  addresses: readonly string[],
): Listener {
  const { algorithm, persistence, monitor, whenAllDown, memberTls, proxyProtocol, timeouts, ...others } =
    given;
  const { memberConnectionLimit, ...own } = others;
  const isKernel = own.engine === 'kernel';
  return {
    name: `default:web:tcp:${given.port}:v4`,
    ...listenerIdentity(`default:web:tcp:${given.port}:v4`),
    protocol: 'TCP',
    portName: '',
    family: 'v4',
    addresses,
    ...own,
    ...(isKernel && { mode: 'tcp', acceptProxy: false, log: 'none' }),
    allowedCidrs,
    pool: {
      algorithm,
      persistence,
      monitor: monitor && asTheModelHasIt(monitor),
      proxyProtocol: isKernel ? 'none' : proxyProtocol,
      tls: isKernel ? undefined : memberTls,
      httpVersion: '1.1',
      cookie: '',
      timeouts,
      memberConnectionLimit: isKernel ? 0 : memberConnectionLimit,
      whenEmpty: 'reject',
      whenAllDown,
      members: ofPool,
    },
  };
}

/** The fields that follow from a listener's name. */
export function listenerIdentity(
  name: string,
): Pick<Listener, 'labels' | 'engine' | 'sourceAddress' | 'reachedBy' | 'routing'> {
  const labels = labelsOfListener(name);
  if (labels === undefined) throw new Error(`${name} is no listener's name`);
  const engine = labels.protocol === 'TCP' ? 'haproxy' : 'kernel';
  return { labels, engine, sourceAddress: 'load-balancer', reachedBy: 'clients', routing: undefined };
}

export function loadBalancer(listeners: readonly Listener[], key = 'default/web'): LoadBalancer {
  const [namespace = '', name = ''] = key.split('/');
  const vips = [{ address: '192.0.2.10', family: 'v4', source: 'status' }] as const;
  return { kind: 'LoadBalancer', key, namespace, name, vips, listeners, problems: [] };
}

/** `count` load balancers that differ only in members and allowed clients. */
export function alike(count: number): fc.Arbitrary<readonly LoadBalancer[]> {
  return fc.uniqueArray(structures, { maxLength: 2, selector: ({ port }) => port }).chain((parts) =>
    fc.array(
      fc
        .tuple(
          ...parts.map((structure) =>
            fc
              .tuple(cidrs, members)
              .map(([allowed, ofPool]) => listener(structure, allowed, ofPool, ['192.0.2.10'])),
          ),
        )
        .map((listeners) => loadBalancer(listeners)),
      { minLength: count, maxLength: count },
    ),
  );
}

/** Two listeners with one member that differ in one option, which sometimes has the same value by chance. */
export const nearlyAlike: fc.Arbitrary<readonly [Listener, Listener]> = fc
  .tuple(structures, structures, fc.nat(), fc.nat())
  .map(([given, other, at, further]) => {
    const changed = withOneOf(given, other, at, further) as Structure;
    const name = '10.0.0.1:8080';
    const [address, port] = ['10.0.0.1', 8080];
    const member: Member = {
      name,
      id: stableId(name),
      address,
      port,
      weight: 16,
      state: 'ready',
      target: '',
    };
    const asListener = (each: Structure) =>
      ({
        ...listener(each, ['10.0.0.0/8'], [member], ['192.0.2.10']),
        name: 'default:web:tcp:80:v4',
      }) as const;
    return [asListener(given), asListener(changed)] as const;
  });

/** Copies one field of `other`, or one field of a mapping that both have. */
function withOneOf(given: object, other: object, at: number, further: number): object {
  const keys = Object.keys(given);
  const key = (keys[at % keys.length] ?? '') as keyof typeof given;
  const [mine, its] = [given[key] as unknown, other[key] as unknown];
  const areMappings = typeof mine === 'object' && typeof its === 'object' && mine !== null && its !== null;
  return { ...given, [key]: areMappings ? withOneOf(mine, its, further, 0) : its };
}

/** Any load balancer; some of its listeners have no address. */
export const anyLoadBalancer: fc.Arbitrary<LoadBalancer> = fc
  .uniqueArray(
    fc
      .tuple(
        structures,
        cidrs,
        members,
        fc.constantFrom<readonly string[]>(['192.0.2.10'], ['192.0.2.10', '192.0.2.11'], []),
      )
      .map((parts) => listener(...parts)),
    { maxLength: 2, selector: ({ name }) => name },
  )
  .map((listeners) => loadBalancer(listeners));
