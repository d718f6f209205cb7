// Node's HTTP and TLS, for all who serve or ask. An ES import of HTTP reads every one of its exports, and one of those,
// WebSocket, loads the package undici: 6 MB that nobody here uses. Asked for like this it is not.
// TLS is loaded when it is first spoken: it takes 15 ms of a start and 5 MB.

export const http = process.getBuiltinModule('node:http');
export const https = () => process.getBuiltinModule('node:https');
export const tls = () => process.getBuiltinModule('node:tls');
