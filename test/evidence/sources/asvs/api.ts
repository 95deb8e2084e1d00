import type { Source } from '../../requirement.ts'

/** V4: HTTP messages and WebSockets. */
export const API: Source['requirements'] = {
  '4.1.1': {
    says: 'L1: Every response with a body names its media type, with the character encoding where it is a text.',
    status: 'contributes',
    promises: ['C4', 'C18', 'H319'],
    reason: 'The responses of Postern do. Those of the device pass with the type that it gives them.',
    vendor: 'Have the firmware send the right `Content-Type`.',
  },
  '4.1.2': {
    says: 'L2: An interface for programs answers plain HTTP with an error, and not with a redirect that hides the mistake.',
    status: 'met if configured',
    promises: ['H115'],
    keys: ['listen.tls'],
  },
  '4.1.3': {
    says: 'L2: A client cannot set or replace a header field by which a proxy informs the server behind it.',
    status: 'contributes',
    promises: ['C17', 'C22', 'H15', 'H17', 'H18', 'H197', 'H202'],
    keys: ['listen.trusted_proxies'],
    reason:
      'The standard fields and those of the configuration are replaced in every spelling. Another field by which a proxy in front informs the firmware passes as the client sends it.',
    vendor: 'If the firmware trusts another field, such as `Client-IP`, name it in `upstream.drop`.',
  },
  '4.1.4': {
    says: 'L3: Methods that the API does not need are refused.',
    status: 'contributes',
    promises: ['H14', 'H193'],
    keys: ['passwords', 'passwords.enforce'],
    reason:
      'TRACE, CONNECT and unknown methods are refused for all. Other methods are refused only for names whose `allow` lists methods.',
    vendor: 'Refuse in the firmware what no path needs.',
  },
  '4.1.5': {
    says: 'L3: Very sensitive messages are signed one by one, in addition to TLS.',
    status: 'not met',
    reason: 'The device API has no signatures of messages.',
  },
  '4.2.1': {
    says: 'L2: Every component finds the end of a message by the rules of its HTTP version, so that no request can be smuggled.',
    status: 'contributes',
    promises: ['H1', 'H4', 'H6', 'H7', 'H10', 'H91', 'H96', 'H304'],
    reason:
      'Postern refuses what two programs could read differently, and writes each message to the device itself. How the device reads it is a matter of the firmware.',
    vendor: 'Close every way to the device but that through Postern.',
  },
  '4.2.2': {
    says: 'L3: The length that a generated message announces is that of its content.',
    status: 'contributes',
    promises: ['C21', 'H11', 'H49', 'H93', 'H304'],
    reason:
      'Postern passes lengths on, and ends a transfer visibly when it is shorter or longer than announced. The length itself is that of client or device.',
    vendor: 'Have the firmware announce right lengths.',
  },
  '4.2.3': {
    says: 'L3: No HTTP/2 message with a field of the connection, such as `Transfer-Encoding`, is accepted or sent.',
    status: 'met',
    promises: ['H40', 'H44'],
  },
  '4.2.4': {
    says: 'L3: An HTTP/2 request with a line break in a field is not accepted.',
    status: 'contributes',
    promises: ['H40', 'H94', 'H101'],
    reason:
      'A method or pseudo-header with a line break is refused. Node.js drops an ordinary field with one and serves the request without it: the field reaches neither gate nor device.',
    vendor: 'Tell an assessor that the field is dropped, and not the request.',
  },
  '4.2.5': {
    says: 'L3: The application sends no URL or header field that is longer than its receiver takes.',
    status: 'contributes',
    promises: ['H22', 'H172'],
    reason:
      'The head of a client is bounded at 16 KiB, and `check` finds out what is too long for the device. Shorter bounds of firmware for single fields are not known.',
    vendor: 'Set `listen.max_header_size` to what the firmware reads.',
  },
  '4.4.1': {
    says: 'L1: All WebSockets go over TLS.',
    status: 'contributes',
    promises: ['H115', 'H353'],
    keys: ['listen.tls', 'upstream.url'],
    reason: 'They do if both keys say so. A WebSocket to a device on the same machine may go without TLS.',
    vendor: 'Give the device a certificate, and `upstream.url` an https URL.',
  },
  '4.4.2': {
    says: 'L2: The `Origin` of a WebSocket handshake is compared with the origins that may open one.',
    status: 'contributes',
    promises: ['H189'],
    keys: ['public_paths'],
    reason:
      'That is so for a WebSocket with the session of a browser. With a bearer token `Origin` is not judged, because no page can make a browser send one in a handshake.',
    vendor: 'Check `Origin` in the firmware, if a public path takes WebSockets.',
  },
}
