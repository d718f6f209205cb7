// Node's HTTP and TLS for the whole agent. An ES import of HTTP evaluates all of its exports, and its WebSocket loads the
// package undici, which the agent does not need. TLS is loaded at its first use, to start faster.

export const http = process.getBuiltinModule('node:http');
export const https = () => process.getBuiltinModule('node:https');
export const tls = () => process.getBuiltinModule('node:tls');
