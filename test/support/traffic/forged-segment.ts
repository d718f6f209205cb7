// A segment of TCP from far outside the window of its connection, as a confused middlebox may send it. Perl has raw sockets;
// Node has none.

import type { TestNetwork } from '../host/namespaces.ts';

/** Waits for data from the port, and answers with a segment whose acknowledgement is right and whose sequence number is far ahead. */
const FORGE = `
my ($port) = @ARGV;
socket(my $in, 17, 2, 8) or die $!; # AF_PACKET, SOCK_DGRAM, ETH_P_IP
socket(my $out, 2, 3, 6) or die $!; # AF_INET, SOCK_RAW, IPPROTO_TCP
alarm 20;
while (defined recv($in, my $packet, 65535, 0)) {
  my ($total, $protocol, $from, $to) = unpack 'x2nx5Cx2a4a4', $packet;
  my $begin = 4 * (ord($packet) & 15);
  next if $protocol != 6;
  my ($source, $target, $sequence, $acknowledged, $offset) = unpack 'nnNNC', substr $packet, $begin, 13;
  my $length = $total - $begin - 4 * ($offset >> 4);
  next if $source != $port || $length <= 0;
  my $sum = 0;
  my $segment = pack 'nnNNCCnnna8', $target, $source, ($acknowledged + 500_000_000) & 0xffffffff, ($sequence + $length) & 0xffffffff, 0x50, 0x18, 1000, 0, 0, 'far away';
  $sum += $_ for unpack 'n*', pack('a4a4CCn', $to, $from, 0, 6, length $segment) . $segment;
  $sum = ($sum & 0xffff) + ($sum >> 16) while $sum > 0xffff;
  substr $segment, 16, 2, pack 'n', ~$sum & 0xffff;
  send($out, $segment, 0, pack('Sna4x8', 2, 0, $from)) or die $!;
  exit;
}
`;

/** Sends a segment of a connection of the host that gets data from this port of its other end. */
export async function sendStraySegment(network: TestNetwork, host: string, port: number): Promise<void> {
  await network.run(host, 'perl', '-e', FORGE, `${port}`);
}

/** Sends packets of connections that no host has: acknowledgements without data, from as many ports, with each DSCP. */
const SCAN = `
my ($source, $target, $port, $count, @dscps) = @ARGV;
my ($from, $to) = map { pack 'C4', split /\\./ } $source, $target;
socket(my $out, 2, 3, 6) or die $!; # AF_INET, SOCK_RAW, IPPROTO_TCP
for my $at (0 .. $count * @dscps - 1) {
  my $own = 40_000 + $at % $count;
  setsockopt($out, 0, 1, pack 'i', $dscps[$at / $count] << 2) or die $!; # IPPROTO_IP, IP_TOS
  my $segment = pack 'nnNNCCnnn', $own, $port, 1000, 2000, 0x50, 0x10, 1000, 0, 0;
  my $sum = 0;
  $sum += $_ for unpack 'n*', pack('a4a4CCn', $from, $to, 0, 6, length $segment) . $segment;
  $sum = ($sum & 0xffff) + ($sum >> 16) while $sum > 0xffff;
  substr $segment, 16, 2, pack 'n', ~$sum & 0xffff;
  send($out, $segment, 0, pack('Sna4x8', 2, 0, $to)) or die $!;
}
`;

export async function sendAcknowledgements(
  network: TestNetwork,
  host: string,
  address: string,
  port: number,
  count: number,
  dscps: readonly number[] = [0],
): Promise<void> {
  const words = [network.v4(host), address, port, count, ...dscps].map(String);
  await network.run(host, 'perl', '-e', SCAN, ...words);
}
