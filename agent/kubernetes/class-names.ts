// The names by which classes choose this agent as their controller.

/** Of GatewayClasses, in `spec.controllerName`. */
export const GATEWAY_CONTROLLER = 'headgate.io/gateway-controller';
/** Of IngressClasses, in `spec.controller`. */
export const INGRESS_CONTROLLER = 'headgate.io/ingress-controller';
