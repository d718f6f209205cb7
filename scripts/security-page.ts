// The table of docs/security.md about what protects, as one text, made from the list of what protects. Pure.

import { OTHER_CONTROLLERS } from '../agent/protection/other-controllers.ts';
import {
  ANNOTATIONS_THAT_PROTECT,
  CLOSES,
  FILTERS_AND_FIELDS,
  type OtherProtection,
  SETTINGS_THAT_PROTECT,
} from '../agent/protection/protections.ts';

/** The lines between which the table stands. */
export const BEGINNING =
  '<!-- Written by scripts/write-security-docs.ts from agent/protection/protections.ts. -->';
export const END = '<!-- The end of what is written. -->';

/** `page`: the document as it is. */
export function securityPage(page: string): string {
  const [before = '', rest = ''] = page.split(BEGINNING);
  const [, after = ''] = rest.split(END);
  return `${before}${BEGINNING}\n\n${tables()}\n${END}${after}`;
}

function tables(): string {
  const given = ANNOTATIONS_THAT_PROTECT.filter(({ kinds }) => kinds.length > 0);
  const missing = ANNOTATIONS_THAT_PROTECT.filter(({ kinds }) => kinds.length === 0);
  return `| annotation | of | protects by | if it cannot be given |
|---|---|---|---|
${given.map(({ name, kinds, by, closes }) => `| \`${name}\` | ${kinds.join(', ')} | ${by} | ${CLOSES[closes]} |`).join('\n')}

On any other kind of object these annotations close it, too.

| field, filter or setting | of | protects by | if it cannot be given |
|---|---|---|---|
${[...FILTERS_AND_FIELDS, ...SETTINGS_THAT_PROTECT].map(row).join('\n')}

Annotations of ingress-nginx that protect and that Headgate does not have; an Ingress with one of them answers 403, unless \`headgate.io/serve-without\` of the Ingress or of its class names it:

| annotation | protects by |
|---|---|
${missing.map(({ name, by }) => `| \`${name}\` | ${by} |`).join('\n')}

Annotations by which an Ingress of a class of this agent asks another controller for protection; it answers 403, unless it has the one that is the same here, or \`headgate.io/serve-without\` names it with its prefix:

| annotation | protects by | the same here |
|---|---|---|
${[...OTHER_CONTROLLERS.values()].map(({ full, by, here }) => `| \`${full}\` | ${by} | ${here.map((each) => `\`${each}\``).join(', ') || '-'} |`).join('\n')}
`;
}

function row({ name, of, by, otherwise }: OtherProtection): string {
  return `| \`${name}\` | ${of} | ${by} | ${otherwise} |`;
}
