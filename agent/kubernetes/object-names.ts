// Rules for names, UIDs and times of objects, and the API group of Headgate's own kinds of object. Pure.

import type { NameForm } from '../base/name-forms.ts';
import { textReader, textRule } from '../base/validate.ts';

export const ADDRESS_GROUP = 'headgate.io';
/** Whose objects in a folder are reported, and which `headgate convert` reads. */
export const METALLB_GROUP = 'metallb.io';
export const ADDRESS_API_VERSION = `${ADDRESS_GROUP}/v1alpha1`;

export const named = (form: NameForm) => textRule(form.check, form.not);
export const namedOrEmpty = (form: NameForm) => textRule((text) => text === '' || form.check(text), form.not);

export const uid = () =>
  textRule((text) => /^[A-Za-z0-9._:-]{0,128}$/.test(text), 'is not a UID of at most 128 characters');

const RFC3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)$/;

/** Milliseconds since the epoch. */
export const time = () =>
  textReader((text) => {
    const milliseconds = RFC3339.test(text) ? Date.parse(text) : Number.NaN;
    return Number.isNaN(milliseconds) ? undefined : milliseconds;
  }, 'is not a time as in "2026-01-31T12:00:00Z" (RFC 3339)');
