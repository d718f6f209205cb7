// The kind of the setting `pools`: a list of address pools, in the settings file or as YAML text in a flag or variable. Pure.

import { type AddressPool, type PoolBgp, readPools } from '../addresses/read-pools.ts';
import { rangeText } from '../base/ip-range.ts';
import { parseYamlDocuments } from '../base/yaml.ts';

import type { Kind, Reading } from './kinds.ts';

export function addressPools(): Kind<readonly AddressPool[]> {
  return {
    placeholder: 'YAML',
    allowed: 'a list of address pools, each a mapping; in a flag or a variable as YAML or JSON',
    read(raw) {
      const value = typeof raw === 'string' ? fromText(raw) : { value: raw };
      if ('errors' in value) return value;
      const { pools, errors } = readPools(value.value);
      return errors.length > 0 ? { errors } : { value: pools };
    },
    write: (pools) => (pools.length === 0 ? '' : JSON.stringify(pools.map(written))),
  };
}

function fromText(text: string): Reading<unknown> {
  const { documents, errors } = parseYamlDocuments(text);
  if (errors.length > 0)
    return { errors: errors.map(({ line, column, message }) => `${line}:${column}: ${message}`) };
  return { value: documents[0]?.value };
}

/** Without the fields that have their default. */
function written(pool: AddressPool): object {
  const {
    name,
    blocks,
    priority,
    auto,
    draining,
    shareAcrossNamespaces,
    namespaces,
    selector,
    announce,
    bgp,
  } = pool;
  const serviceSelector = selected(selector);
  const serviceAllocation = {
    ...(namespaces.length > 0 ? { namespaces } : {}),
    ...(serviceSelector === undefined ? {} : { serviceSelector }),
  };
  return {
    name,
    blocks: blocks.map(rangeText),
    ...(priority === 0 ? {} : { priority }),
    ...(auto ? {} : { auto }),
    ...(draining ? { draining } : {}),
    ...(shareAcrossNamespaces ? { shareAcrossNamespaces } : {}),
    ...(Object.keys(serviceAllocation).length > 0 ? { serviceAllocation } : {}),
    ...(announce === '' ? {} : { announce }),
    ...(bgp === undefined ? {} : { bgp: writtenBgp(bgp) }),
  };
}

function writtenBgp({ aggregates, hosts, hostSelector, ...bgp }: PoolBgp): object {
  const lengthOf = (family: string) => aggregates.find((each) => each.family === family)?.length;
  const selector = selected(hostSelector);
  return {
    ...bgp,
    aggregateLength: lengthOf('v4'),
    aggregateLengthV6: lengthOf('v6'),
    announceFrom: { hosts, ...(selector === undefined ? {} : { hostSelector: selector }) },
  };
}

function selected({ matchLabels, matchExpressions }: AddressPool['selector']): object | undefined {
  if (Object.keys(matchLabels).length === 0 && matchExpressions.length === 0) return undefined;
  return { matchLabels, matchExpressions };
}
