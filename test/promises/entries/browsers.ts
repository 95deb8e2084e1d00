import type { Promised } from '../promised.ts'

/** The device's own pages in a browser. */
export const BROWSERS = {
  H187: {
    sentence:
      'With `browser.login`, a navigation without a session gets a login page with 401 at the path that it asked for, in the language of the browser. A request of a program gets its JSON. The page needs no script, loads nothing, and no other origin can frame it.',
    reason: 'a browser sends no bearer token; WCAG 2.2 AA, which axe-core checks; clickjacking',
  },
  H188: {
    sentence:
      'The session of a browser is a random id of its own in the cookie `__Host-postern`. It ends with its grant, is renewed while it is used, and counts in a window of its own. The device neither sees nor sets the cookie, and a bearer token beats it.',
    reason: 'session fixation, cookie tossing; a page of a device loads up to a hundred files',
  },
  H189: {
    sentence:
      'A request with that cookie reaches the device only if a page of the same origin or the user caused it, whatever its method. Only the login page itself logs in or out, and a link of another origin leads to the first page of the device after the login, never to its own path.',
    reason:
      'CSRF, login CSRF: firmware changes its state by GET, and another port of the same host is the same site',
  },
  H190: {
    sentence:
      'The login of a browser is the password grant: the same window, counters and rules. It leads to a path with exactly one slash at its begin. Over cleartext from another machine there is no login, and the page says so.',
    reason: 'password guessing by another way in; open redirect; a password in cleartext',
  },
  H191: {
    sentence:
      'Preflights of `cors.origins` are answered without a token, and count. All responses to these origins can be read there, never with a cookie. The fields of the device are replaced, and without the key nothing changes.',
    reason:
      'Fetch §3.3.3 and §3.3.5: a preflight carries no token, and a wildcard of the device would open it to every page',
  },
  H192: {
    sentence:
      'Web interfaces with long polls, a live view over a WebSocket, tokens of their own and uploads work in a browser behind Postern. A new password ends the live view, and the next page is that of the login.',
    reason: 'decision: proved by real programs in Chromium, not by a model of them',
  },
  H218: {
    sentence:
      'The logout and the first page after the end of a session clear what the browser keeps of the pages of the device: its cache, and the pages to which Back leads. Both say so, and so does a login page after a new password.',
    reason: 'the next user of the browser would see pages of the one before',
  },
  H219: {
    sentence:
      'A further login of a browser keeps what its tabs have open, unless it is another name’s. A link of another site offers to open the device in place of the password. Input that was not sent is said so, and the login leads back to the page behind it, if that is one of this address.',
    reason: 'a login that ends what works, and a form that is lost without a word; open redirect by Referer',
  },
  H310: {
    sentence:
      'The session of a browser ends when it had no request for `browser.idle`, and `tokens.refresh_lifetime` after its login at the latest, also with `tokens.rotate_refresh`. A request in flight, such as an open WebSocket, is a use. A reload changes `browser.idle` for all sessions.',
    reason: 'a browser that its user has left, at a shared machine; OWASP ASVS, idle and absolute timeouts',
  },
  H220: {
    sentence:
      'The realm is any text without control characters. The challenge carries it as a quoted string, in UTF-8.',
    reason: 'RFC 9110 §5.6.4 and §11.5; header injection',
  },
  H315: {
    sentence:
      'A navigation that Postern refuses gets a page with the status and the fields that the JSON would have: `Sec-Fetch-Mode: navigate`, or without that field an `Accept` that prefers HTML. A program gets JSON: so does a request with a token, or to the token endpoint, unless `Sec-Fetch-Mode` says that it is a navigation, and one whose token is refused.',
    reason: 'a person reads it; RFC 9110 §12.5.1; RFC 6749 §5.2 for the token endpoint',
  },
  H316: {
    sentence:
      'Only a page for a GET of this origin loads again by itself: after `Retry-After`, and at least 5 s. A failure at the device has `Retry-After` only if the device cannot have got the request.',
    reason:
      'firmware changes its state by GET, so a repeated one must be what the user asked for (CSRF), and a reboot must not repeat itself',
  },
  H317: {
    sentence:
      'Such a page speaks the languages of the login page and shows the request id, and nothing else of the request, of an address or of a version. It needs no script, and is read at 320 px, with text of 200 %, by keyboard and by ear.',
    reason: 'WCAG 2.2 AA, which axe-core checks; C18; cross-site scripting',
  },
  H318: {
    sentence:
      '`browser.hsts` is on every response over TLS, once, in place of that of the device. It needs a certificate of the operator; otherwise the configuration is refused.',
    reason:
      'RFC 6797 §7.1, §7.2 and §8.4: a browser offers no way around a certificate that it does not trust',
  },
  H319: {
    sentence:
      'Each body of Postern, on the public listener and on that for operators, has `X-Content-Type-Options: nosniff`. Pages have `Cross-Origin-Opener-Policy: same-origin`.',
    reason: 'a body that is taken for a page; windows of other origins (XS-Leaks)',
  },
  H355: {
    sentence:
      'The password field of the login pages, that for clients and that of the live page, hides what is typed. It takes what is pasted, and what the browser or a password manager fills in. `init` and `hash-password` do not show it on the terminal.',
    reason: 'a password that has to be typed is a short one; a person at a shared screen',
  },
} as const satisfies Readonly<Record<`H${number}`, Promised>>
