// The JSON schema of headgate.yaml, for editors and linters, made from the table of settings. It allows what the kinds allow
// as far as a schema can say it; the agent itself checks the rest. Pure.

import { version } from '../agent/base/version.ts';
import { poolSpecSchema } from '../agent/kubernetes/address-pool.ts';
import { bgpSchema } from '../agent/settings/bgp.ts';
import { plain } from '../agent/settings/help.ts';
import { hostSchema } from '../agent/settings/hosts.ts';
import { allSettings, type Setting } from '../agent/settings/table.ts';
import { vrrpInstanceSchema, vrrpSchema } from '../agent/settings/vrrp.ts';

type Schema = { readonly [name: string]: unknown };

const DRAFT = 'http://json-schema.org/draft-07/schema#';
const SCALAR: Schema = { type: ['string', 'number', 'boolean'] };

export function settingsSchema(): string {
  const properties = allSettings().map(([name, setting]) => [name, settingSchema(name, setting)]);
  const schema = {
    $schema: DRAFT,
    title: `Settings of the load-balancer agent headgate ${version}`,
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(properties),
  };
  return `${JSON.stringify(schema, undefined, 2)}\n`;
}

function settingSchema(name: string, setting: Setting<unknown>): Schema {
  const description = `${plain(setting.doc)} Allowed: ${plain(setting.kind.allowed)}.`;
  const given = setting.default;
  return {
    description,
    ...(typeof given === 'function' || given === '' ? {} : { default: given }),
    ...valueSchema(name, setting),
  };
}

function valueSchema(name: string, { kind }: Setting<unknown>): Schema {
  const { placeholder, separator, allowed } = kind;
  if (name === 'pools') return { type: 'array', items: poolSchema() };
  if (name === 'vrrp') return vrrpValue();
  if (name === 'bgp') return { ...bgpSchema.openApi, additionalProperties: false };
  if (name === 'hosts')
    return { type: 'array', maxItems: 16, items: { ...hostSchema.openApi, additionalProperties: false } };
  if (placeholder === '') return { type: 'boolean' };
  if (placeholder.includes('|')) return { enum: placeholder.split('|') };
  if (separator === ';') return { type: 'object', additionalProperties: SCALAR };
  if (separator !== undefined)
    return { oneOf: [{ type: 'array', items: { type: 'string' } }, { type: 'string' }] };
  const [, minimum, maximum] = /^a whole number from (\d+) to (\d+)/.exec(allowed) ?? [];
  if (maximum !== undefined) return { type: 'integer', minimum: Number(minimum), maximum: Number(maximum) };
  // `0` for an interval that is off.
  return allowed.startsWith('0 or ') ? { oneOf: [{ type: 'string' }, { const: 0 }] } : { type: 'string' };
}

/** The `spec` of an AddressPool with a name. */
function poolSchema(): Schema {
  const { properties, required } = poolSpecSchema.openApi as {
    properties: Schema;
    required?: readonly string[];
  };
  return {
    type: 'object',
    additionalProperties: false,
    required: ['name', ...(required ?? [])],
    properties: { name: { type: 'string' }, ...properties },
  };
}

/** The keys of the only instance may stand beside the others. */
function vrrpValue(): Schema {
  const { properties } = vrrpSchema.openApi as { properties: Schema };
  const instance = vrrpInstanceSchema.openApi as { properties: Schema };
  return {
    type: 'object',
    additionalProperties: false,
    properties: { ...properties, ...instance.properties },
  };
}
