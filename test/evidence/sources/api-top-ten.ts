import type { Source } from '../requirement.ts'

/** Ten kinds of weakness. Each is wider than a proxy, so none is met by Postern alone. */
export const API_TOP_TEN: Source = {
  name: 'API',
  title: 'OWASP API Security Top 10',
  version:
    'The edition of 2023, its sections on when an API is vulnerable and on prevention. Each risk is wider than a proxy, so no row is met by Postern alone.',
  readAt: 'https://github.com/OWASP/API-Security/tree/master/editions/2023/en',
  requirements: {
    'API1:2023': {
      says: 'A client reads and changes only the objects that it has a right to, whatever id it sends.',
      status: 'contributes',
      promises: ['H24', 'H193'],
      keys: ['passwords', 'passwords.enforce', 'enforce', 'public_paths'],
      reason:
        'Postern decides by method and path. An object whose id is in a query or a body is judged by the device alone.',
      vendor:
        'Check in the firmware whether the account may have the object, where one device has several users.',
    },
    'API2:2023': {
      says: 'Nobody passes the login by guessing, by a weak password, or by a token that is forged, expired or read from a URL.',
      status: 'contributes',
      promises: ['C4', 'C7', 'C8', 'C10', 'H34', 'H36', 'H181', 'H225', 'H226'],
      keys: [
        'enforce',
        'public_paths',
        'limits.oauth.requests',
        'limits.wrong_passwords',
        'limits.store',
        'password.file',
        'listen.tls',
        'tokens.access_lifetime',
        'tokens.refresh_lifetime',
        'listen.trusted_proxies',
      ],
      reason:
        'There is one factor, and no lock-out: guesses become slow. A reset of the password is not a matter of Postern.',
      vendor: 'Give each device a password of its own, and protect the way to change it.',
    },
    'API3:2023': {
      says: 'A response shows, and a request changes, only the properties of an object that this client may see and set.',
      status: "vendor's task",
      reason: 'Postern does not read bodies.',
      vendor: 'Return and accept only the properties that a client needs.',
    },
    'API4:2023': {
      says: 'No client can use up processor, memory, connections, storage or money without a limit.',
      status: 'contributes',
      promises: [
        'C13',
        'C14',
        'C25',
        'C26',
        'H22',
        'H29',
        'H32',
        'H55',
        'H99',
        'H138',
        'H244',
        'H303',
        'H304',
      ],
      keys: ['enforce', 'limits.api.requests', 'limits.store', 'upstream.max_body', 'listen.trusted_proxies'],
      reason:
        'What a single request costs the device, such as the number of records in a response, is decided by its parameters, which Postern does not know.',
      vendor: 'Bound in the firmware what one request can ask for.',
    },
    'API5:2023': {
      says: 'A client calls only the functions that it has a right to, whatever path or method it tries.',
      status: 'contributes',
      promises: ['H14', 'H24', 'H193', 'H196', 'H203', 'H204'],
      keys: ['passwords', 'passwords.enforce', 'enforce', 'public_paths'],
      reason:
        'A list of methods and paths refuses all else. A function that the query or the body selects cannot be listed.',
      vendor: 'Give each function a path of its own, and change nothing on GET.',
    },
    'API6:2023': {
      says: 'A sequence of calls that harms somebody when it is repeated too often is protected against programs.',
      status: 'contributes',
      promises: ['C13', 'H309'],
      keys: ['enforce', 'limits.api.requests', 'limits.store', 'listen.trusted_proxies'],
      reason: 'Limits count requests. Which sequence does harm is known to the maker of the device.',
      vendor: 'Find such sequences, for example a reboot, and limit them in the firmware.',
    },
    'API7:2023': {
      says: 'No request makes the server fetch an address that the client has chosen.',
      status: 'contributes',
      promises: ['H14', 'H25', 'H171'],
      reason:
        'Postern itself connects to configured addresses only. Postern has no part in what the device fetches by itself.',
      vendor: 'Restrict what the firmware fetches for its users, such as updates and webhooks, to a list.',
    },
    'API8:2023': {
      says: 'Every part is hardened, up to date and set up alike, with TLS, and without features, messages or headers that help an attacker.',
      status: 'contributes',
      promises: ['C18', 'H14', 'H76', 'H96', 'H107', 'H115', 'H191', 'H217', 'H224', 'H318', 'H319'],
      keys: [
        'listen.tls',
        'listen.tls.cert',
        'browser.hsts',
        'upstream.url',
        'cors.origins',
        'admin.address',
        'admin.tls',
      ],
      reason: 'The responses of the device pass as they are, with the headers that it sets or lacks.',
      vendor: 'Harden the firmware and the machine, and install updates of both.',
    },
    'API9:2023': {
      says: 'It is known which hosts and versions of the API run, who may reach them, and which data goes where.',
      status: "vendor's task",
      reason:
        'The log of Postern shows which paths are used, but neither what they are for nor who should use them.',
      vendor: 'Keep a list of devices, versions of firmware and their APIs, with the end of support of each.',
    },
    'API10:2023': {
      says: 'What comes from another API is as little trusted as a client: encrypted, checked, bounded, and without following redirects.',
      status: 'contributes',
      promises: ['H49', 'H51', 'H52', 'H54', 'H55', 'H100', 'H101', 'H238', 'H353'],
      keys: ['upstream.url', 'upstream.tls.insecure', 'upstream.tls.weak'],
      reason:
        'Postern checks the form of the device’s responses. Their content reaches the clients as it is.',
      vendor: 'Have client programs check what they read from the device.',
    },
  },
}
