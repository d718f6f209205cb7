// Node's HTTP, for all who serve or ask. An ES import of it reads every one of its exports, and one of those,
// WebSocket, loads the package undici: 6 MB that nobody here uses. Asked for like this it is not.

export const http = process.getBuiltinModule('node:http');
