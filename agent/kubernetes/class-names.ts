// The names by which classes choose this agent as their controller.

/** In `spec.controllerName` of GatewayClasses. */
export const GATEWAY_CONTROLLER = 'headgate.io/gateway-controller';
/** In `spec.controller` of IngressClasses. */
export const INGRESS_CONTROLLER = 'headgate.io/ingress-controller';
/** The condition of a Service to which an agent gave addresses: its message names them. */
export const IP_ALLOCATED = 'headgate.io/IPAllocated';
