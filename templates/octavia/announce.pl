# Announces addresses on an interface: for IPv4 a request and an answer of ARP, because some machines learn from one of them only;
# for IPv6 a neighbour advertisement. Arguments: the index of the interface, its MAC address in hexadecimal, the addresses.
# Only with modules that perl-base has.
use Socket qw(inet_pton AF_INET AF_INET6);
my ($index, $digits, @addresses) = @ARGV;
my $mac = pack 'H12', $digits;
socket(my $socket, 17, 3, 0) or die "$!\n"; # AF_PACKET, SOCK_RAW

sub transmit {
  my ($to, $type, $body) = @_;
  # sockaddr_ll: family, protocol, index, kind of hardware, kind of packet, length of the address, address
  my $place = pack 'SnlSCCa8', 17, $type, $index, 1, 0, 6, $to;
  defined send($socket, $to . $mac . pack('n', $type) . $body, 0, $place) or die "$!\n";
}

# RFC 1071
sub checksum {
  my $sum = 0;
  $sum += $_ for unpack 'n*', $_[0];
  $sum = ($sum & 0xffff) + ($sum >> 16) while $sum >> 16;
  return ~$sum & 0xffff;
}

for my $text (@addresses) {
  if (index($text, ':') < 0) {
    my $address = inet_pton(AF_INET, $text) // die "Not an address: $text\n";
    my $everyone = "\xff" x 6;
    # RFC 5227, 3: sender and target are the same address.
    transmit($everyone, 0x0806, pack('nnCCn', 1, 0x0800, 6, 4, $_) . $mac . $address . $everyone . $address) for 1, 2;
  } else {
    my $address = inet_pton(AF_INET6, $text) // die "Not an address: $text\n";
    my $nodes = inet_pton(AF_INET6, 'ff02::1');
    # RFC 4861, 4.4: from a router, instead of what is known; with the link-layer address.
    my $flags_and_rest = pack('N', 0xa0000000) . $address . pack('CC', 2, 1) . $mac;
    my $sum = checksum($address . $nodes . pack('NN', 32, 58) . pack('CCn', 136, 0, 0) . $flags_and_rest);
    my $message = pack('CCn', 136, 0, $sum) . $flags_and_rest;
    transmit("\x33\x33\0\0\0\1", 0x86dd, pack('NnCC', 6 << 28, length $message, 58, 255) . $address . $nodes . $message);
  }
}
