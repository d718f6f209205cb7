// A label selector of Kubernetes: its schema, and which labels it selects. Pure.

import { labelValue, qualifiedName } from '../base/name-forms.ts';
import { listOf, object, oneOf, textsByName, type Valid } from '../base/validate.ts';
import { named } from './object-names.ts';

const expression = object({
  key: named(qualifiedName),
  operator: oneOf('In', 'NotIn', 'Exists', 'DoesNotExist'),
  values: listOf(named(labelValue)).or([]),
}).refine(({ operator, values }, refuse) => {
  const wantsValues = operator === 'In' || operator === 'NotIn';
  if (wantsValues !== values.length > 0) {
    const message = wantsValues ? `missing, ${operator} needs at least one` : `${operator} takes none`;
    refuse(['values'], message);
  }
});

export const selectorSchema = object({
  matchLabels: textsByName(qualifiedName, labelValue).or({}),
  matchExpressions: listOf(expression).or([]),
});

/** An empty one selects everything. */
export type Selector = Valid<typeof selectorSchema>;

/** https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/ */
export function matches(selector: Selector, labels: Readonly<Record<string, string>>): boolean {
  for (const [key, value] of Object.entries(selector.matchLabels)) {
    if (!Object.hasOwn(labels, key) || labels[key] !== value) return false;
  }
  return selector.matchExpressions.every((expression) => meets(expression, labels));
}

function meets(
  { key, operator, values }: Selector['matchExpressions'][number],
  labels: Readonly<Record<string, string>>,
): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
  }
}
