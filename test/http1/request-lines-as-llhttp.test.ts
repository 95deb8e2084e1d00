import { describeRequests } from './request-rows.ts'

describeRequests('Request lines', [
  {
    name: 'a plain request',
    bytes: 'OPTIONS /a HTTP/1.1\r\nFirst: 1\r\nSecond:\t 2\r\n\r\n',
    reads: 'OPTIONS /a 1.1 {First: 1; Second: 2} ""',
  },
  {
    name: 'a method that begins like the name of the protocol',
    bytes: 'HEAD /a HTTP/1.1\r\n\r\n',
    reads: 'HEAD /a 1.1 {} ""',
  },
  { name: 'no fields', bytes: 'GET /a/b HTTP/1.1\r\n\r\n', reads: 'GET /a/b 1.1 {} ""' },
  {
    name: 'one field',
    bytes: 'GET /a HTTP/1.1\r\nAccept: */*\r\n\r\n',
    reads: 'GET /a 1.1 {Accept: */*} ""',
  },
  {
    name: 'the fields of curl',
    bytes:
      'GET /a HTTP/1.1\r\nUser-Agent: curl/8.1 (x86_64) libcurl/8.1\r\nHost: 0.0.0.0=80\r\nAccept: */*\r\n\r\n',
    reads: 'GET /a 1.1 {User-Agent: curl/8.1 (x86_64) libcurl/8.1; Host: 0.0.0.0=80; Accept: */*} ""',
  },
  {
    name: 'the fields of a browser',
    bytes:
      'GET /a HTTP/1.1\r\nHost: a\r\nAccept: text/html,*/*;q=0.8\r\nKeep-Alive: 300\r\nConnection: keep-alive\r\n\r\n',
    reads: 'GET /a 1.1 {Host: a; Accept: text/html,*/*;q=0.8; Keep-Alive: 300; Connection: keep-alive} ""',
  },
  {
    name: 'HTTP/1.0 without keep-alive',
    bytes: 'GET /a HTTP/1.0\r\nHost: a:80\r\n\r\n',
    reads: 'GET /a 1.0 {Host: a:80} "" closes',
  },
  { name: 'a leading empty line', bytes: '\r\nGET /a HTTP/1.1\r\n\r\n', reads: 'GET /a 1.1 {} ""' },
  {
    name: 'a leading bare LF',
    bytes: '\nGET /a HTTP/1.1\r\n\r\n',
    reads: 'refused',
    departs: 'RFC 9112 §2.2: the sidecar skips CRLF. A bare LF ends no line, here or elsewhere in a head.',
  },
  {
    name: 'a leading bare CR',
    bytes: '\rGET /a HTTP/1.1\r\n\r\n',
    reads: 'refused',
    departs: 'RFC 9112 §2.2: a bare CR does not end a line.',
  },
  {
    name: 'nine leading empty lines',
    bytes: `${'\r\n'.repeat(9)}GET /a HTTP/1.1\r\n\r\n`,
    reads: 'refused',
    departs:
      'RFC 9112 §2.2 allows at least one. An endless row of empty lines would hold a connection for nothing.',
  },
  { name: 'a field in place of the request line', bytes: '\r\nHost: a\r\n\r\n', reads: 'refused' },
  {
    name: 'no version, as in HTTP/0.9',
    bytes: 'GET /a\r\n\r\n',
    reads: 'refused',
    departs: 'RFC 9112 §2.3: all readers know the framing of HTTP/1.0 and HTTP/1.1, and of no other version.',
  },
  { name: 'HTTP/5.6', bytes: 'GET /a HTTP/5.6\r\n\r\n', reads: 'refused' },
  {
    name: 'HTTP/2.0',
    bytes: 'GET /a HTTP/2.0\r\n\r\n',
    reads: 'refused',
    departs: 'RFC 9112 §2.3: all readers know the framing of HTTP/1.0 and HTTP/1.1, and of no other version.',
  },
  {
    name: 'HTTP/0.9',
    bytes: 'GET /a HTTP/0.9\r\n\r\n',
    reads: 'refused',
    departs: 'RFC 9112 §2.3: all readers know the framing of HTTP/1.0 and HTTP/1.1, and of no other version.',
  },
  { name: 'HTTP/1.2', bytes: 'GET /a HTTP/1.2\r\n\r\n', reads: 'refused' },
  { name: 'the name of the protocol in lower case', bytes: 'GET /a http/1.1\r\n\r\n', reads: 'refused' },
  { name: 'the protocol ICE', bytes: 'GET /a ICE/1.0\r\n\r\n', reads: 'refused' },
  {
    name: 'a SOURCE request of ICE',
    bytes: 'SOURCE /a ICE/1.0\r\n\r\n',
    reads: 'refused',
    departs: 'RFC 9112 §2.3: this is another protocol, and it would reach the device as HTTP.',
  },
  { name: 'a letter before the protocol', bytes: 'GET /a IHTTP/1.0\r\n\r\n', reads: 'refused' },
  {
    name: 'the protocol RTSP',
    bytes: 'OPTIONS /a RTSP/1.0\r\n\r\n',
    reads: 'refused',
    departs: 'RFC 9112 §2.3: this is another protocol, and it would reach the device as HTTP.',
  },
  { name: 'a PUT request of RTSP', bytes: 'PUT /a RTSP/1.0\r\n\r\n', reads: 'refused' },
  {
    name: 'an ANNOUNCE request of RTSP',
    bytes: 'ANNOUNCE /a RTSP/1.0\r\n\r\n',
    reads: 'refused',
    departs: 'RFC 9112 §2.3: this is another protocol, and it would reach the device as HTTP.',
  },
  { name: 'a bare CR after the version', bytes: 'GET /a HTTP/1.1\rLine: 1\r\n\r\n', reads: 'refused' },
  { name: 'a bare LF after the version', bytes: 'GET /a HTTP/1.1\nHost: a\r\n\r\n', reads: 'refused' },
  { name: 'a space after the version', bytes: 'GET /a HTTP/1.1 \r\n\r\n', reads: 'refused' },
  {
    name: 'two spaces after the method',
    bytes: 'GET  /a HTTP/1.1\r\n\r\n',
    reads: 'refused',
    departs:
      'RFC 9112 §3: a single space separates. A reader that splits at each space finds another target.',
  },
  {
    name: 'two spaces after the target',
    bytes: 'GET /a  HTTP/1.1\r\n\r\n',
    reads: 'refused',
    departs:
      'RFC 9112 §3: a single space separates. A reader that splits at each space finds another target.',
  },
  { name: 'a tab after the method', bytes: 'GET\t/a HTTP/1.1\r\n\r\n', reads: 'refused' },
  { name: 'a space before the method', bytes: ' GET /a HTTP/1.1\r\n\r\n', reads: 'refused' },
])

describeRequests('Methods', [
  { name: 'REPORT', bytes: 'REPORT /a HTTP/1.1\r\nHost: a\r\n\r\n', reads: 'REPORT /a 1.1 {Host: a} ""' },
  { name: 'PURGE', bytes: 'PURGE /a HTTP/1.1\r\nHost: a\r\n\r\n', reads: 'PURGE /a 1.1 {Host: a} ""' },
  { name: 'SEARCH', bytes: 'SEARCH /a HTTP/1.1\r\nHost: a\r\n\r\n', reads: 'SEARCH /a 1.1 {Host: a} ""' },
  { name: 'LINK', bytes: 'LINK /a HTTP/1.1\r\nHost: a\r\n\r\n', reads: 'LINK /a 1.1 {Host: a} ""' },
  { name: 'UNLINK', bytes: 'UNLINK /a HTTP/1.1\r\nHost: a\r\n\r\n', reads: 'UNLINK /a 1.1 {Host: a} ""' },
  { name: 'SOURCE', bytes: 'SOURCE /a HTTP/1.1\r\nHost: a\r\n\r\n', reads: 'SOURCE /a 1.1 {Host: a} ""' },
  {
    name: 'M-SEARCH and an asterisk',
    bytes: 'M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nMAN: "ssdp:discover"\r\n\r\n',
    reads: 'M-SEARCH * 1.1 {HOST: 239.255.255.250:1900; MAN: "ssdp:discover"} ""',
  },
  {
    name: 'PATCH with a body',
    bytes: 'PATCH /a HTTP/1.1\r\nIf-Match: "x"\r\nContent-Length: 4\r\n\r\ndiff',
    reads: 'PATCH /a 1.1 {If-Match: "x"; Content-Length: 4} "diff"',
  },
  {
    name: 'QUERY with a body',
    bytes: 'QUERY /a HTTP/1.1\r\nContent-Length: 3\r\n\r\na=b',
    reads: 'QUERY /a 1.1 {Content-Length: 3} "a=b"',
  },
  {
    name: 'ANNOUNCE, which is a method of RTSP',
    bytes: 'ANNOUNCE /a HTTP/1.0\r\n\r\n',
    reads: 'ANNOUNCE /a 1.0 {} "" closes',
    departs:
      'RFC 9110 §9.1: the list of methods is open. The gate refuses this one with the list of allowed methods.',
  },
  {
    name: 'a method that begins like a known one',
    bytes: 'GETS /a HTTP/1.1\r\n\r\n',
    reads: 'GETS /a 1.1 {} ""',
    departs:
      'RFC 9110 §9.1: the list of methods is open. The gate refuses this one with the list of allowed methods.',
  },
  {
    name: 'an unknown method',
    bytes: 'FROB /a HTTP/1.1\r\n\r\n',
    reads: 'FROB /a 1.1 {} ""',
    departs:
      'RFC 9110 §9.1: the list of methods is open. The gate refuses this one with the list of allowed methods.',
  },
  {
    name: 'a method in lower case',
    bytes: 'get /a HTTP/1.1\r\n\r\n',
    reads: 'get /a 1.1 {} ""',
    departs:
      'RFC 9110 §9.1: the list of methods is open. The gate refuses this one with the list of allowed methods.',
  },
  {
    name: 'PRI with HTTP/1.1',
    bytes: 'PRI * HTTP/1.1\r\n\r\nSM\r\n\r\n',
    reads: 'PRI * 1.1 {} "", refused',
    departs:
      'RFC 9110 §9.1: the list of methods is open. The gate refuses this one with the list of allowed methods.',
  },
  { name: 'the preface of HTTP/2', bytes: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', reads: 'refused' },
  {
    name: 'CONNECT',
    bytes: 'CONNECT a.example:443 HTTP/1.0\r\nUser-Agent: x\r\n\r\nand something else',
    reads: 'CONNECT a.example:443 1.0 {User-Agent: x} leaves HTTP',
  },
  {
    name: 'CONNECT to a name in capitals',
    bytes: 'CONNECT A.EXAMPLE:443 HTTP/1.0\r\n\r\n',
    reads: 'CONNECT A.EXAMPLE:443 1.0 {} leaves HTTP',
  },
  {
    name: 'CONNECT to a name with an underscore',
    bytes: 'CONNECT a_0.example:443 HTTP/1.0\r\n\r\n',
    reads: 'CONNECT a_0.example:443 1.0 {} leaves HTTP',
  },
  {
    name: 'CONNECT with a length',
    bytes: 'CONNECT a.example:443 HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody',
    reads: 'CONNECT a.example:443 1.1 {Content-Length: 4} leaves HTTP',
  },
])

describeRequests('Targets', [
  {
    name: 'chunked in quotation marks',
    bytes: 'GET /a_"b"?c=\\"d\\" HTTP/1.1\r\n\r\n',
    reads: 'GET /a_"b"?c=\\"d\\" 1.1 {} ""',
  },
  { name: 'a second question mark', bytes: 'GET /a?b=c?d HTTP/1.1\r\n\r\n', reads: 'GET /a?b=c?d 1.1 {} ""' },
  {
    name: 'question marks in a row',
    bytes: 'GET /p/??a.css,b.css?t=1 HTTP/1.1\r\n\r\n',
    reads: 'GET /p/??a.css,b.css?t=1 1.1 {} ""',
  },
  { name: 'a vertical bar', bytes: 'GET /a?b=| HTTP/1.1\r\n\r\n', reads: 'GET /a?b=| 1.1 {} ""' },
  {
    name: 'a fragment',
    bytes: 'GET /a/1?page=1#post-2 HTTP/1.1\r\n\r\n',
    reads: 'GET /a/1?page=1#post-2 1.1 {} ""',
  },
  {
    name: 'two fragments',
    bytes: 'GET /a#b#c?d HTTP/1.1\r\n\r\n',
    reads: 'GET /a#b#c?d 1.1 {} ""',
  },
  { name: 'an escaped space', bytes: 'GET /a%20b HTTP/1.1\r\n\r\n', reads: 'GET /a%20b 1.1 {} ""' },
  { name: 'a space', bytes: 'GET /a b HTTP/1.1\r\n\r\n', reads: 'refused' },
  { name: 'a tab', bytes: 'GET /a\tb HTTP/1.1\r\n\r\n', reads: 'refused' },
  { name: 'a form feed', bytes: 'GET /a\fb HTTP/1.1\r\n\r\n', reads: 'refused' },
  { name: 'a NUL', bytes: 'GET /a\x00b HTTP/1.1\r\n\r\n', reads: 'refused' },
  {
    name: 'UTF-8',
    bytes: 'GET /\xce\xb4/a HTTP/1.1\r\n\r\n',
    reads: 'GET /\xce\xb4/a 1.1 {} ""',
    departs: 'RFC 3986 §2.1: the gate refuses it and asks the client to percent-encode.',
  },
  {
    name: 'an absolute form',
    bytes: 'GET http://a.example/b?c=d#e HTTP/1.1\r\n\r\n',
    reads: 'GET http://a.example/b?c=d#e 1.1 {} ""',
  },
  {
    name: 'an absolute form with a port',
    bytes: 'GET http://a.example:444/ HTTP/1.1\r\n\r\n',
    reads: 'GET http://a.example:444/ 1.1 {} ""',
  },
  {
    name: 'an absolute form without a path',
    bytes: 'GET http://a.example:1234 HTTP/1.1\r\n\r\n',
    reads: 'GET http://a.example:1234 1.1 {} ""',
  },
  {
    name: 'a query directly after the host',
    bytes: 'GET http://a.example?b=c HTTP/1.1\r\n\r\n',
    reads: 'GET http://a.example?b=c 1.1 {} ""',
  },
  {
    name: 'a query directly after the port',
    bytes: 'GET http://a.example:1234?b=c HTTP/1.1\r\n\r\n',
    reads: 'GET http://a.example:1234?b=c 1.1 {} ""',
  },
  {
    name: 'a user and password',
    bytes: 'GET http://u%20:p!&*$@a.example:1234/c HTTP/1.1\r\n\r\n',
    reads: 'GET http://u%20:p!&*$@a.example:1234/c 1.1 {} ""',
  },
  {
    name: 'every mark in a user',
    bytes: 'GET http://u-._~!$&()*+,;=@a.example/ HTTP/1.1\r\n\r\n',
    reads: 'GET http://u-._~!$&()*+,;=@a.example/ 1.1 {} ""',
  },
  { name: 'two at signs', bytes: 'GET http://a:b@@a.example:443/ HTTP/1.1\r\n\r\n', reads: 'refused' },
  {
    name: 'an IPv6 address',
    bytes: 'GET http://[1:2::3:4]:67/ HTTP/1.1\r\n\r\n',
    reads: 'GET http://[1:2::3:4]:67/ 1.1 {} ""',
  },
  {
    name: 'an IPv4 address in an IPv6 one',
    bytes: 'GET http://[2001:0:0:0:0:0:1.9.1.1]/ HTTP/1.1\r\n\r\n',
    reads: 'GET http://[2001:0:0:0:0:0:1.9.1.1]/ 1.1 {} ""',
  },
  {
    name: 'an IPv6 address with a zone',
    bytes: 'GET http://[fe80::a%25eth0]/ HTTP/1.1\r\n\r\n',
    reads: 'GET http://[fe80::a%25eth0]/ 1.1 {} ""',
  },
  {
    name: 'a zone with a bare percent sign',
    bytes: 'GET http://[fe80::a%eth0]/ HTTP/1.1\r\n\r\n',
    reads: 'GET http://[fe80::a%eth0]/ 1.1 {} ""',
  },
  { name: 'a scheme without slashes', bytes: 'GET schema:/a?b=c#d HTTP/1.1\r\n\r\n', reads: 'refused' },
  { name: 'another scheme', bytes: 'GET foo://a/b HTTP/1.1\r\n\r\n', reads: 'GET foo://a/b 1.1 {} ""' },
  { name: 'a target without a leading slash', bytes: 'GET a HTTP/1.1\r\n\r\n', reads: 'refused' },
  { name: 'a lone exclamation mark', bytes: 'GET ! HTTP/1.1\r\n\r\n', reads: 'refused' },
  { name: 'no target', bytes: 'GET  HTTP/1.1\r\n\r\n', reads: 'refused' },
])
