// The names by which classes choose this agent as their controller.

/** Of GatewayClasses, in `spec.controllerName`. */
export const GATEWAY_CONTROLLER = 'headgate.io/gateway-controller';
/** Of IngressClasses, in `spec.controller`. */
export const INGRESS_CONTROLLER = 'headgate.io/ingress-controller';
/** The condition of a Service to which an agent gave addresses: its message names them. */
export const IP_ALLOCATED = 'headgate.io/IPAllocated';
