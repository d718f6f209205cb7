#!/usr/bin/perl
# keepalived runs this: it ends with 0 if this amphora may have the VIPs. The file "checked" beside it has the sockets of HAProxy,
# each of which must answer, and the word "datagrams" if the kernel serves listeners, too. An empty file: there is no listener.
# Only with modules that perl-base has.
use strict;
use Socket qw(pack_sockaddr_un PF_UNIX SOCK_STREAM);

# Less than keepalived's interval; a HAProxy that hangs accepts connections, but does not answer.
$SIG{ALRM} = sub { exit 1 };
alarm 3;
(my $folder = $0) =~ s{/[^/]*$}{};
open(my $file, '<', "$folder/checked") or exit 1;
chomp(my @lines = <$file>);
exit 1 unless @lines;
for my $path (grep { $_ ne 'datagrams' } @lines) {
  socket(my $haproxy, PF_UNIX, SOCK_STREAM, 0) or exit 1;
  connect($haproxy, pack_sockaddr_un($path)) or exit 1;
  defined syswrite($haproxy, "show info\n") or exit 1;
  my $answer = '';
  1 while sysread $haproxy, $answer, 65536, length $answer;
  exit 1 unless $answer =~ /^Pid: \d+$/m;
}
exit 0;
