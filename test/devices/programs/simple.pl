# A device with HTTP::Server::Simple, which leaves everything but the head to its program.
package Device;
use strict;
use warnings;
use base 'HTTP::Server::Simple';

my ($port, $root) = @ARGV;
my %asked;

sub setup { my ($self, %part) = @_; @asked{keys %part} = values %part; $self->SUPER::setup(%part) }

sub handler {
    my $path = $asked{path};
    my $file;
    if ($asked{method} !~ /^(?:GET|HEAD)$/) {
        print "HTTP/1.0 405 Method Not Allowed\r\nContent-Type: text/plain\r\n\r\nno\n";
    } elsif (-f "$root$path" && open($file, '<:raw', "$root$path")) {
        print "HTTP/1.0 200 OK\r\nContent-Type: application/octet-stream\r\n\r\n";
        print do { local $/; <$file> } if $asked{method} eq 'GET';
    } else {
        print "HTTP/1.0 404 Not Found\r\nContent-Type: text/plain\r\n\r\nno\n";
    }
}

my $server = Device->new($port);
$server->host('127.0.0.1');
$server->run;
