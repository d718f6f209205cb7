// What a Service has and lacks of the pools, with problems for its status, its Events and `why`. Pure.

import { type AddressClaim, type ClaimedPort, portText } from '../kubernetes/address-claim.ts';
import type { AddressPool } from '../kubernetes/address-pool.ts';
import { notGranted, type PortLimit, portLimit, whyNotGranted } from '../kubernetes/port-limit.ts';
import { toPublic } from '../kubernetes/public-addresses.ts';
import type { Family, OwnerKey, Problem } from '../model/load-balancer.ts';
import { objectOf, ownerOf } from '../model/names.ts';
import { blockerWords, type Found, holderWords, type PoolsAndClaims } from './find-address.ts';
import { limitPlace, whyBeyond } from './namespace-limit.ts';
import { whyNotAllowed, whyNotPorts } from './pool-rules.ts';
import { type AddressRequest, wishOf } from './request.ts';

export interface Assignment {
  readonly key: OwnerKey;
  /** Addresses of claims, the primary family first; then those that the Service has without a claim. */
  readonly addresses: readonly AssignedAddress[];
  /** It has what it requests, or at least one address with ipFamilyPolicy PreferDualStack. */
  readonly isComplete: boolean;
  readonly problems: readonly Problem[];
}

export interface AssignedAddress {
  readonly address: string;
  readonly family: Family;
  /** The address that clients use; '' while the provisioner has not answered it. */
  readonly publicAddress: string;
  /** The pool that owns it now, '' for none. */
  readonly pool: string;
  /** Name of the AddressClaim, '' for an address that the Service has without one. */
  readonly claim: string;
  /** Empty: the whole address. */
  readonly ports: readonly ClaimedPort[];
  /** undefined if nothing limits its ports. */
  readonly limit: PortLimit | undefined;
  /** Why the Service would not get it today, '' if it would. */
  readonly outOfPool: string;
}

/** `inUse` are the Service's claims, `lacks` what can be found for each family that it lacks. */
export function assignmentOf(
  request: AddressRequest,
  inUse: readonly AddressClaim[],
  lacks: readonly Found[],
  book: PoolsAndClaims,
  isLeading: boolean,
): { readonly assignment: Assignment; readonly waitFor: readonly string[] } {
  const { key, need } = request;
  const claims = request.families.flatMap((family) => inUse.find((claim) => claim.family === family) ?? []);
  const addresses = [
    ...claims.map((claim) => assigned(claim, request, book)),
    ...ownOf(request, claims).map(({ address, family }) => ({
      ...OWN,
      address,
      family,
      publicAddress: address,
    })),
  ];
  const waitFor = lacks.flatMap((found) => (found.kind === 'none' ? found.waitFor : []));
  // The address of its status can be adopted as soon as it is free.
  if (lacks.length > 0) waitFor.push(...request.statusIPs.map(({ address }) => `address ${address}`));
  const sharing = claims.flatMap((claim) => {
    const problems = sharingProblems(request, claim, book);
    // A Service that shares it without a key gets the whole address after the others have gone.
    const mayGrow = claim.ports.length > 0 && claim.sharingKey === '';
    if (problems.length > 0 || mayGrow) waitFor.push(`address ${claim.address}`);
    return problems;
  });
  for (const { pool } of addresses) if (pool !== '') waitFor.push(limitPlace(request.namespace, pool));
  const ofPublic = publicProblems(request, claims, book);
  waitFor.push(...ofPublic.waitFor);
  const hasEnough = addresses.length > 0 && (lacks.length === 0 || need === 'some');
  const assignment: Assignment = {
    key,
    addresses,
    isComplete: hasEnough,
    problems: [
      ...request.problems,
      ...lackProblems(request, lacks, hasEnough),
      ...(isLeading || hasEnough || need === 'nothing' ? [] : undecided(key, lacks)),
      ...sharing,
      ...ofPublic.problems,
      ...addresses.flatMap((address) => limitProblems(request, address)),
      // A host that follows may not have read the pools yet.
      ...(isLeading || book.pools.all.length > 0 ? outOfPoolProblems(key, addresses) : []),
    ],
  };
  return { assignment, waitFor };
}

/** An address that the Service has without the pools. */
const OWN = { pool: '', claim: '', ports: [], limit: undefined, outOfPool: '' } as const;

function ownOf({ own }: AddressRequest, claims: readonly AddressClaim[]): AddressRequest['own'] {
  return own.filter(
    ({ family, isLeaving }) => !isLeaving || !claims.some((claim) => claim.family === family),
  );
}

function assigned(claim: AddressClaim, request: AddressRequest, book: PoolsAndClaims): AssignedAddress {
  const { address, family, name, ports } = claim;
  const pool = book.pools.ownerOf(address);
  let outOfPool = '';
  let limit: PortLimit | undefined;
  if (pool === undefined) outOfPool = 'it belongs to no pool any more';
  else if (!book.index.isReservedFor(address, wishOf(request, pool))) {
    limit = portLimit(pool, claim);
    const granted = request.ports.filter((port) => whyNotGranted(limit, port) === undefined);
    const why =
      whyNotAllowed(pool, request) ??
      whyNotPorts(pool, { ...request, ports: granted }) ??
      whyBeyond(pool, request, address, book);
    if (why !== undefined) outOfPool = `its pool "${pool.name}" ${why}`;
  }
  const publicAddress = publicAddressOf(claim, pool);
  return { address, family, publicAddress, pool: pool?.name ?? '', claim: name, ports, limit, outOfPool };
}

/** '' while it is not known. */
export function publicAddressOf(
  { address, publicAddress }: Pick<AddressClaim, 'address' | 'publicAddress'>,
  pool: AddressPool | undefined,
): string {
  switch (pool?.public?.kind) {
    case 'allowed':
      return publicAddress || address;
    case 'provisioner':
      return publicAddress;
    default:
      return toPublic(pool?.public, address);
  }
}

/** Public addresses that are awaited, that the owner names and does not get, and that it keeps against the rule. */
function publicProblems(
  { key, publicAddresses }: AddressRequest,
  claims: readonly AddressClaim[],
  book: PoolsAndClaims,
): { readonly problems: readonly Problem[]; readonly waitFor: readonly string[] } {
  const problems: Problem[] = [];
  const waitFor: string[] = [];
  const add = (reason: Problem['reason'], message: string) =>
    problems.push({ object: objectOf(key), reason, message });
  for (const claim of claims) {
    const { address, family } = claim;
    const pool = book.pools.ownerOf(address);
    if (pool?.public?.kind === 'provisioner' && claim.publicAddress === '')
      add(
        'AddressPending',
        `Waiting for the program of the setting "provisioner" to answer with the public address of ${address}`,
      );
    const wanted = publicAddresses.find((each) => each.family === family)?.address;
    if (wanted === undefined || pool === undefined) continue;
    const { why = '', holder } = book.whyNotPublic(wanted, address, pool) ?? {};
    if (holder !== undefined) {
      waitFor.push(`public ${wanted}`);
      add('AddressPending', `Waiting for the public address ${wanted}: ${holderWords(holder)}`);
    } else if (why !== '' && claim.publicAddress === wanted)
      add('AddressOutOfPool', `It keeps the public address ${wanted}, although ${why}`);
    else if (why !== '') add('AddressNotAllowed', `Cannot use the public address ${wanted}: ${why}`);
  }
  return { problems, waitFor };
}

/** PreferDualStack needs only one family, unless it names an address of the other one. */
function lackProblems(
  { need }: AddressRequest,
  lacks: readonly Found[],
  hasEnough: boolean,
): readonly Problem[] {
  if (need === 'one') {
    const hopeful = lacks.find((found) => found.kind === 'none' && !found.isHopeless) ?? lacks[0];
    return hopeful === undefined ? [] : problemsOf([hopeful]);
  }
  const problems = problemsOf(lacks);
  return hasEnough ? problems.filter(({ reason }) => reason !== 'AddressPending') : problems;
}

function problemsOf(lacks: readonly Found[]): readonly Problem[] {
  return lacks.flatMap((found) => (found.kind === 'none' ? [found.problem] : []));
}

/** A free address on a host that follows: only the leader gives it. */
function undecided(key: string, lacks: readonly Found[]): readonly Problem[] {
  if (!lacks.some(({ kind }) => kind === 'found')) return [];
  const message = 'It has no address yet: the host that gives addresses has not given it one';
  return [{ object: objectOf(key), reason: 'AddressPending', message }];
}

/** Ports and a sharing key that the Service requests on a shared address, and that others have. */
function sharingProblems(
  request: AddressRequest,
  claim: AddressClaim,
  book: PoolsAndClaims,
): readonly Problem[] {
  if (claim.ports.length === 0) return [];
  const object = objectOf(request.key);
  const { address, sharingKey } = claim;
  const problems: Problem[] = [];
  const wish = wishOf(request, book.pools.ownerOf(address));
  const [blocker] = sharingKey === request.sharingKey ? [] : book.index.blockers(address, wish);
  if (blocker !== undefined) {
    const way = request.sharingKey === '' ? 'alone' : `by the key "${request.sharingKey}"`;
    const message = `Cannot have ${address} ${way}: ${blockerWords(blocker, wish)}`;
    problems.push({ object, reason: 'AddressInUse', message });
  }
  const granted = new Set(claim.ports.map(portText));
  for (const port of request.ports) {
    if (granted.has(portText(port))) continue;
    const message = `Cannot have ${address} ${port.protocol} port ${port.port}: ${holderOf(port, claim, book)}`;
    problems.push({ object, reason: 'AddressInUse', message, port });
  }
  return problems;
}

/** Gateways and IngressClasses report the ports of their listeners themselves. */
function limitProblems(
  { key, ports }: AddressRequest,
  { address, limit }: AssignedAddress,
): readonly Problem[] {
  if (ownerOf(key).kind !== 'Service') return [];
  return ports.flatMap((port) => {
    const why = whyNotGranted(limit, port);
    return why === undefined ? [] : [notGranted(key, address, port, why)];
  });
}

function holderOf(port: ClaimedPort, { address, service }: AddressClaim, book: PoolsAndClaims): string {
  const text = portText(port);
  const holder = book.index
    .at(address)
    .find((other) => other.service !== service && other.ports.some((each) => portText(each) === text));
  return holder === undefined ? 'another Service that shares the address has it' : holderWords(holder);
}

function outOfPoolProblems(key: string, addresses: readonly AssignedAddress[]): readonly Problem[] {
  const object = objectOf(key);
  return addresses
    .filter(({ outOfPool }) => outOfPool !== '')
    .map(({ address, outOfPool }) => ({
      object,
      reason: 'AddressOutOfPool',
      message: `It keeps ${address}, although ${outOfPool}`,
    }));
}
