# Prints which processes change tables of nftables: changes.pl TABLE... It says "watching"; then a line is a transaction: the process, by the id of its
# netlink socket, and "elements" or, if it changed anything else, "rules". It ends with its standard input. nft could do this,
# but reads all elements into memory first; Perl is on every Debian. Without modules, which the container does not have.
my %watched = map { $_ => 1 } @ARGV;
socket(my $socket, 16, 3, 12) or die "$!\n"; # AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER
setsockopt($socket, 1, 33, pack('i', 32 << 20)); # SOL_SOCKET, SO_RCVBUFFORCE
bind($socket, pack('SSLL', 16, 0, 0, 1 << 6)) or die "$!\n"; # NFNLGRP_NFTABLES
$| = 1;
print "watching\n";
my ($process, $what) = (0, '');
my $both = '';
vec($both, fileno($_), 1) = 1 for \*STDIN, $socket;
while (select(my $ready = $both, undef, undef, undef) > 0) {
  exit if vec($ready, fileno(STDIN), 1);
  # It fails if the kernel had more to report than fits, which only a load of all rules makes.
  my $messages;
  if (!defined recv($socket, $messages, 1 << 20, 0)) { $what = ''; next }
  for (my $at = 0; $at + 20 <= length $messages;) {
    my ($length, $type, $from) = unpack 'LSx6L', substr $messages, $at, 16;
    if ($type == 0x0a0f) { # NFT_MSG_NEWGEN
      print "$process $what\n" if $what ne '';
      $what = '';
    } else {
      my $size = unpack 'S', substr $messages, $at + 20, 2;
      if ($watched{unpack 'Z*', substr $messages, $at + 24, $size - 4}) {
        $process = $from;
        my $isElement = $type == 0x0a0c || $type == 0x0a0e;
        $what = 'rules' unless $isElement;
        $what ||= 'elements';
      }
    }
    $at += $length < 20 ? 20 : ($length + 3) & ~3;
  }
}
