# Probes members from the network namespace in which it runs. A line of the input is a probe: its number; udp, tcp, http or sctp;
# address, port, milliseconds until it is given up; for http the path. An answer is the number and the result:
#   data, silence (udp alone), open (tcp, sctp), status CODE (http), or failed and why.
# It ends with its input. Only with modules that perl-base has.
use strict;
use Errno qw(EAGAIN EINTR EINPROGRESS EWOULDBLOCK);
use Fcntl qw(F_SETFL O_NONBLOCK);
use Socket qw(inet_pton pack_sockaddr_in pack_sockaddr_in6 AF_INET AF_INET6 SOCK_DGRAM SOCK_STREAM SOCK_RAW SOL_SOCKET SO_ERROR);
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my $MOST = 500; # sockets at a time; further probes wait
my (%running, @waiting);
my $input = '';
my $isOver = 0;
$| = 1;
$SIG{PIPE} = 'IGNORE';

sub now { return 1000 * clock_gettime(CLOCK_MONOTONIC) }

sub answer {
  my ($probe, $result) = @_;
  delete $running{$probe->{number}};
  close $probe->{socket} if $probe->{socket};
  print "$probe->{number} $result\n";
}

sub failed { my ($probe, $why) = @_; answer($probe, "failed $why") }

# Castagnoli's polynomial, RFC 9260, appendix A.
sub crc32c {
  my $crc = 0xffffffff;
  for my $byte (unpack 'C*', $_[0]) {
    $crc ^= $byte;
    $crc = $crc & 1 ? ($crc >> 1) ^ 0x82f63b78 : $crc >> 1 for 1 .. 8;
  }
  return pack 'V', $crc ^ 0xffffffff;
}

sub packet { # of SCTP: ports, tag, chunks
  my ($from, $to, $tag, $chunks) = @_;
  my $head = pack 'nnN', $from, $to, $tag;
  return $head . crc32c($head . "\0\0\0\0" . $chunks) . $chunks;
}

sub begin {
  my ($probe) = @_;
  my ($kind, $address, $port) = @{$probe}{qw(kind address port)};
  $running{$probe->{number}} = $probe;
  $probe->{until} = now() + $probe->{limit};
  my $family = index($address, ':') < 0 ? AF_INET : AF_INET6;
  my $packed = inet_pton($family, $address) // return failed($probe, 'its address is none');
  # A raw socket has no port.
  my $number = $kind eq 'sctp' ? 0 : $port;
  my $place = $family == AF_INET ? pack_sockaddr_in($number, $packed) : pack_sockaddr_in6($number, $packed);
  my ($type, $protocol) = $kind eq 'udp' ? (SOCK_DGRAM, 17) : $kind eq 'sctp' ? (SOCK_RAW, 132) : (SOCK_STREAM, 6);
  unless (socket($probe->{socket}, $family, $type, $protocol)) {
    delete $probe->{socket};
    return answer($probe, "unknown $!");
  }
  fcntl($probe->{socket}, F_SETFL, O_NONBLOCK);
  unless (connect($probe->{socket}, $place)) {
    return failed($probe, "$!") unless $!{EINPROGRESS};
    $probe->{isConnecting} = 1;
    return;
  }
  connected($probe, $family);
}

sub connected {
  my ($probe, $family) = @_;
  my ($kind, $socket) = @{$probe}{qw(kind socket)};
  return answer($probe, 'open') if $kind eq 'tcp';
  my $text = '';
  if ($kind eq 'http') {
    my $host = index($probe->{address}, ':') < 0 ? $probe->{address} : "[$probe->{address}]";
    $text = "GET $probe->{path} HTTP/1.0\r\nUser-Agent: KeepAliveClient\r\nHost: $host:$probe->{port}\r\n\r\n";
  } elsif ($kind eq 'sctp') {
    $probe->{from} = 49152 + int rand 16000;
    $probe->{tag} = 1 + int rand 0xfffffffe;
    # INIT: tag, window, streams out and in, first number. RFC 9260, 3.3.2.
    $text = packet($probe->{from}, $probe->{port}, 0, pack 'CCnNNnnN', 1, 0, 20, $probe->{tag}, 65535, 1, 1, 1);
  }
  defined send($socket, $text, 0) or return failed($probe, "$!");
}

sub readable {
  my ($probe) = @_;
  my ($kind, $socket) = @{$probe}{qw(kind socket)};
  defined recv($socket, my $bytes, 65536, 0) or return $!{EAGAIN} || $!{EINTR} ? undef : failed($probe, "$!");
  return answer($probe, 'data') if $kind eq 'udp';
  if ($kind eq 'http') {
    $probe->{said} .= $bytes;
    return answer($probe, "status $1") if $probe->{said} =~ m{^HTTP/\d\.\d (\d{3})\b};
    failed($probe, 'its answer is not of HTTP') if $bytes eq '' || length $probe->{said} > 4096 || $probe->{said} =~ /\n/;
    return;
  }
  # Raw sockets of IPv4 give the header of IP, too.
  $bytes = substr $bytes, 4 * (ord($bytes) & 15) if index($probe->{address}, ':') < 0 && length $bytes;
  return if length $bytes < 16;
  my ($from, $to, $tag, $sum, $chunk) = unpack 'nnNNC', $bytes;
  return if $from != $probe->{port} || $to != $probe->{from} || $tag != $probe->{tag};
  return failed($probe, 'it refuses the association (ABORT)') if $chunk == 6;
  return if $chunk != 2 || length $bytes < 20; # INIT ACK
  my $theirs = unpack 'N', substr $bytes, 16, 4;
  send($socket, packet($probe->{from}, $probe->{port}, $theirs, pack 'CCn', 6, 0, 4), 0); # ABORT
  answer($probe, 'open');
}

until ($isOver && !%running && !@waiting) {
  begin(shift @waiting) while @waiting && keys %running < $MOST;
  my ($reads, $writes, $errors) = ('', '', '');
  vec($reads, fileno(STDIN), 1) = 1 unless $isOver;
  my $first;
  for my $probe (values %running) {
    vec($probe->{isConnecting} ? $writes : $reads, fileno($probe->{socket}), 1) = 1;
    $first = $probe->{until} if !defined $first || $probe->{until} < $first;
  }
  my $wait = defined $first ? ($first - now()) / 1000 : undef;
  $wait = 0 if defined $wait && $wait < 0;
  next if select($reads, $writes, undef, $wait) < 0;
  if (!$isOver && vec($reads, fileno(STDIN), 1)) {
    $isOver = 1 unless sysread STDIN, $input, 65536, length $input;
    # Nobody waits for the answers any more.
    last if $isOver;
    while ($input =~ s/^([^\n]*)\n//) {
      my ($number, $kind, $address, $port, $limit, $path) = split / /, $1;
      push @waiting, {number => $number, kind => $kind, address => $address, port => $port, limit => $limit, path => $path, said => ''};
    }
  }
  for my $probe (values %running) {
    my $file = fileno $probe->{socket};
    if ($probe->{isConnecting} && vec($writes, $file, 1)) {
      delete $probe->{isConnecting};
      $! = unpack 'i', getsockopt($probe->{socket}, SOL_SOCKET, SO_ERROR);
      if ($!) { failed($probe, "$!") } else { connected($probe) }
    } elsif (vec($reads, $file, 1)) {
      readable($probe);
    } elsif ($probe->{until} <= now()) {
      if ($probe->{kind} eq 'udp') { answer($probe, 'silence') } else { failed($probe, 'it does not answer') }
    }
  }
}
