# A device in Perl: files, and a program at /digest that answers with the SHA-256 of its body.
use strict;
use warnings;
use Digest::SHA 'sha256_hex';
use HTTP::Daemon;
use HTTP::Response;
use URI::Escape 'uri_unescape';

my ($port, $root) = @ARGV;
my $daemon = HTTP::Daemon->new(LocalAddr => '127.0.0.1', LocalPort => $port, ReuseAddr => 1) or die $@;
$SIG{CHLD} = 'IGNORE';
while (my $connection = $daemon->accept) {
    next if fork;
    while (my $request = $connection->get_request) {
        my $path = uri_unescape($request->uri->path);
        if ($request->method eq 'POST' && $path eq '/digest') {
            my $sum = sha256_hex($request->content) . "  -\n";
            $connection->send_response(HTTP::Response->new(200, 'OK', ['Content-Type' => 'text/plain'], $sum));
        } elsif ($request->method =~ /^(?:GET|HEAD)$/ && -f "$root$path") {
            $connection->send_file_response("$root$path");
        } else {
            $connection->send_error($request->method =~ /^(?:GET|HEAD)$/ ? 404 : 405);
        }
    }
    exit;
}
