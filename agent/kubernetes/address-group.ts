// The API group of the kinds of object that are our own.

export const ADDRESS_GROUP = 'headgate.io';
export const ADDRESS_API_VERSION = `${ADDRESS_GROUP}/v1alpha1`;
