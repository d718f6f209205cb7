# Asks members for echoes (ICMP) as if by a client: which of them have a VIP, whatever ARP says. Reads lines of an interface's
# index, the member's MAC, this host's address and the VIP; writes for each 1 for an answer, 0 for none. Needs CAP_NET_RAW.
use strict;
use warnings;
use Socket;
my ($AF_PACKET, $IP) = (17, 0x0800);
socket(my $link, $AF_PACKET, SOCK_DGRAM, unpack('S', pack('n', $IP))) or die "$!\n";
my @asked = map { [split] } <STDIN>;
my @found = (0) x @asked;
sub sum16 {
  my $sum = 0;
  $sum += $_ for unpack('n*', $_[0]);
  $sum = ($sum & 0xffff) + ($sum >> 16) while $sum >> 16;
  return ~$sum & 0xffff;
}
for my $round (1 .. 2) {
  for my $at (grep { !$found[$_] } 0 .. $#asked) {
    my ($index, $mac, $from, $vip) = @{ $asked[$at] };
    my $echo = pack('CCnnn', 8, 0, 0, $$ & 0xffff, $at);
    substr($echo, 2, 2) = pack('n', sum16($echo));
    my $head = pack('CCnnnCCna4a4', 0x45, 0, 28, $at, 0, 64, 1, 0, inet_aton($from), inet_aton($vip));
    substr($head, 10, 2) = pack('n', sum16($head));
    my $to = pack('SnlSCCa8', $AF_PACKET, $IP, $index, 0, 0, 6, pack('H12', $mac =~ s/://gr));
    send($link, $head . $echo, 0, $to);
  }
  my $end = time + 2;
  while (time < $end && grep { !$_ } @found) {
    my $ready = '';
    vec($ready, fileno($link), 1) = 1;
    last unless select($ready, undef, undef, 0.5);
    my $by = recv($link, my $packet, 128, 0);
    next unless defined $by && length $packet >= 28;
    my ($type, $id, $at) = (unpack('C', substr($packet, 20, 1)), unpack('nn', substr($packet, 24, 4)));
    next unless unpack('C', substr($packet, 9, 1)) == 1 && $type == 0 && $id == ($$ & 0xffff) && $at < @asked;
    my $mac = join ':', unpack('(H2)6', substr($by, 12, 6));
    $found[$at] = 1 if inet_ntoa(substr($packet, 12, 4)) eq $asked[$at][3] && $mac eq $asked[$at][1];
  }
}
print "$_\n" for @found;
