# Deletes flows of conntrack whose members are gone. A line of the input is a place: its key (address, port and protocol of the
# first packet, in hexadecimal); "all" if all its flows have to go, "some" if flows without a member have to, "few" if not; and
# the members that keep their flows (address and port). "go" and the numbers of address families begin one pass through the
# flows of the host; the answer is how many there were and how many of them were deleted. It ends with its input. The program
# conntrack would go through all flows for each place. "from", an address and another, in hexadecimal: flows that the first has
# opened, without a place, must leave from the second. Without modules, which the container does not have.
sub connected {
  socket(my $socket, 16, 3, 12) or die "$!\n"; # AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER
  bind($socket, pack('SSLL', 16, 0, 0, 0)) or die "$!\n";
  return $socket;
}
my ($reading, $deleting) = (connected(), connected());
my (%places, %sources);
# In a message the addresses of the first packet and of the answer stand at fixed places: offset of the second tuple; offsets of
# source, destination and ports in a tuple; length of an address.
my %layouts = (2 => [52, 12, 20, 4], 10 => [76, 12, 32, 16]);
$| = 1;
while (defined(my $line = <STDIN>)) {
  my ($key, $mode, @members) = split ' ', $line;
  if ($key eq 'from') {
    $sources{pack 'H*', $mode} = pack 'H*', $members[0];
    next;
  }
  if ($key ne 'go') {
    $places{pack 'H*', $key} = [$mode, map { pack 'H*', $_ } @members];
    next;
  }
  my ($count, $deleted) = (0, 0);
  for my $family ($mode, @members) {
    my ($second, $source, $destination, $size) = @{$layouts{$family}};
    my $numbers = $destination + $size + 4;
    send($reading, pack('LSSLLCCS', 20, 0x0101, 0x301, 1, 0, $family, 0, 0), 0) or die "$!\n"; # IPCTNL_MSG_CT_GET, NLM_F_DUMP
    my $isOver = 0;
    until ($isOver) {
      defined recv($reading, my $messages, 1 << 17, 0) or die "$!\n";
      my $orders = '';
      for (my $at = 0; $at + 16 <= length $messages;) {
        my ($length, $type) = unpack 'LS', substr $messages, $at, 6;
        if ($type == 2) { # NLMSG_ERROR
          my $error = unpack 'l', substr $messages, $at + 16, 4;
          $! = -$error;
          die "$!\n" if $error != 0;
        }
        if ($type == 2 || $type == 3 || $length < 16) { # NLMSG_DONE
          $isOver = 1;
          last;
        }
        $count++;
        my $tuple = $at + 20;
        # CTA_TUPLE_ORIG and CTA_TUPLE_REPLY.
        my ($one, $kind) = unpack 'SS', substr $messages, $tuple, 4;
        if ($one == $second && ($kind & 0x3fff) == 1) {
          my $protocol = substr $messages, $tuple + $numbers + 4, 1;
          my $first = substr($messages, $tuple + $destination, $size) . substr($messages, $tuple + $numbers + 20, 2);
          my $place = $places{$first . $protocol};
          my $from = $sources{substr $messages, $tuple + $source, $size};
          if ($place || defined $from) {
            my $answer = $tuple + $second;
            my $member = substr($messages, $answer + $source, $size) . substr($messages, $answer + $numbers + 12, 2);
            my $message = substr $messages, $at, $length;
            my $isOther = defined $from && $member eq $first && $from ne substr $messages, $answer + $destination, $size;
            if ($place ? isGone($place, ord $protocol, $first, $member, $message) : $isOther && isOpening(ord $protocol, $message)) {
              my $attributes = join '', map { $_->[1] } grep { $_->[0] == 1 || $_->[0] == 12 || $_->[0] == 18 } attributes($message, 20);
              $orders .= pack('LSSLLCCS', 20 + length $attributes, 0x0102, 1, 1, 0, $family, 0, 0) . $attributes; # IPCTNL_MSG_CT_DELETE
              $deleted++;
            }
          }
        }
        $at += ($length + 3) & ~3;
      }
      if ($orders ne '') {
        defined send($deleting, $orders, 0) or die "$!\n";
        1 while defined recv($deleting, my $refused, 1 << 16, 0x40); # MSG_DONTWAIT: those that have ended meanwhile.
      }
    }
  }
  print "$count $deleted\n";
  (%places, %sources) = ();
}

# A connection that is established cannot get another source.
sub isOpening {
  my ($protocol, $message) = @_;
  return grep { $_ == $protocol } 17, 132 if $protocol != 6;
  return grep { $_ == stateOf($message) } 1, 9; # SYN_SENT, SYN_SENT2
}

sub isGone {
  my ($place, $protocol, $first, $member, $message) = @_;
  my ($mode, @members) = @$place;
  my $isTcp = $protocol == 6;
  return !$isTcp if $mode eq 'all';
  if ($member eq $first) {
    return 0 if $mode ne 'some';
    # SYN_SENT, LAST_ACK, TIME_WAIT, CLOSE: a client that sends its first packet again, or uses its port again, would not reach
    # the rules.
    return !$isTcp || grep { $_ == stateOf($message) } 1, 6, 7, 8;
  }
  return 0 if grep { $_ eq $member } @members;
  return !$isTcp || stateOf($message) == 1;
}

# Type and bytes of each attribute.
sub attributes {
  my ($bytes, $at) = @_;
  my @found;
  while ($at + 4 <= length $bytes) {
    my ($length, $type) = unpack 'SS', substr $bytes, $at, 4;
    last if $length < 4;
    my $whole = ($length + 3) & ~3;
    push @found, [$type & 0x3fff, substr($bytes, $at, $whole)];
    $at += $whole;
  }
  return @found;
}

# Of TCP: CTA_PROTOINFO, CTA_PROTOINFO_TCP, CTA_PROTOINFO_TCP_STATE.
sub stateOf {
  my ($bytes, $at) = (shift, 20);
  for my $type (4, 1, 1) {
    my ($found) = grep { $_->[0] == $type } attributes($bytes, $at);
    return -1 if !$found;
    ($bytes, $at) = ($found->[1], 4);
  }
  return ord substr $bytes, 4, 1;
}
