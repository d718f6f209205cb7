// Conditions of statuses as values, and the features that the agent claims. Pure.

import { quote } from '../../base/quote.ts';
import { GATEWAY_CONTROLLER } from '../../kubernetes/class-names.ts';
import type { GatewayClass } from '../../kubernetes/gateway/gateway-objects.ts';
import type { RefusalReason, StatusCondition } from '../../model/object-status.ts';

export function isOurs(gatewayClass: GatewayClass | undefined): boolean {
  return gatewayClass?.controllerName === GATEWAY_CONTROLLER;
}

/** Why a Gateway of the class is not served, as a sentence for `why`. */
export function notOurs(name: string, gatewayClass: GatewayClass | undefined): string {
  if (gatewayClass === undefined) return `Its GatewayClass ${quote(name)} does not exist`;
  return `Its GatewayClass ${quote(name)} has controller ${quote(gatewayClass.controllerName)}, not "${GATEWAY_CONTROLLER}"`;
}

export function isTrue(type: string, reason: string, message = ''): StatusCondition {
  return { type, status: 'True', reason, message };
}

export function isFalse(type: string, reason: string, message: string): StatusCondition {
  return { type, status: 'False', reason, message };
}

/** True with reason `good`, or False for the fault. */
export function condition(
  type: string,
  good: string,
  message: string,
  fault: RefusalReason | undefined,
): StatusCondition {
  return fault === undefined ? isTrue(type, good, message) : isFalse(type, fault.reason, fault.message);
}
