import type { Promised } from '../promised.ts'

/** What an operator can see at a glance. */
export const OVERVIEW = {
  H148: {
    sentence:
      'Each second of the last 15 minutes is recorded, also without an open page. A second in which the process was stopped or the machine slept is missing, and its counts appear as no rate.',
    reason:
      'decision: a page that is opened after an incident shows the incident, and no peak that never was',
  },
  H149: {
    sentence:
      '`postern_refusals_total` counts every refusal by its kind, also those of bytes that are no valid request and of a bug in the gate. All kinds are series from the start, and `rate_limited` agrees with `postern_rate_limited_total`.',
    reason: '`rate()` misses the first event of a series that begins with it',
  },
  H150: {
    sentence:
      'The overview and `postern_upstream_up` say what requests have shown: a device that cannot be reached is down, and so is one whose last five answers failed. The overview says which clients and grants have used up a window, until when, and how often they were refused, the most refused first, and when each grant was last used. The last log lines that are not about requests are kept, whatever `log.level` says.',
    reason:
      'the operator asks who it is while it happens, and no log of the day before has been configured for it',
  },
  H151: {
    sentence:
      'The admin listener serves a request only if its `Host` is an address or a name that no attacker can own in DNS. `/metrics`, `/healthz` and `/readyz` need no login and answer unchanged.',
    reason: 'DNS rebinding: a web page would read the listener through the browser of an operator',
  },
  H152: {
    sentence:
      'With `admin.password_file`, everything of the live page needs a login. A session ends when the viewer signs out, after 12 h without use, after 7 days, and with a new password, and its streams end with it. An open page is use. At most ten failed logins a minute are accepted from one address, however many others fail.',
    reason: 'guessed passwords; a stolen session',
  },
  H153: {
    sentence:
      'Without a password, the live page is served on a Unix socket, and on loopback to requests that name it by a loopback address or `localhost`, and not through a proxy that names itself or speaks HTTP/1.0. Only the page itself can sign in or out and revoke. Over TCP, revoking needs the password of the page.',
    reason: 'cross-site request forgery; login CSRF; an open port; a proxy that forgot the password',
  },
  H154: {
    sentence:
      'An open page has each second as long as it stays, 16 pages can be open, and one that does not read is dropped. A page that connects again replaces its own stream. Without an open page nothing is computed but the points of H148.',
    reason: 'decision: watching must not cost the requests anything; slow read',
  },
  H155: {
    sentence:
      'The live page runs no foreign script and is shown in no frame. Its files have exact names, and connections, bodies and times of the admin listener are bounded.',
    reason: 'cross-site scripting, clickjacking, path traversal, slowloris',
  },
  H156: {
    sentence:
      'The live page shows the figures of each second without reloading. A second without data is a gap. The page loads nothing from elsewhere and writes nothing to the console.',
    reason: 'decision: a page that invents or delays a figure misleads the operator when it matters',
  },
  H157: {
    sentence:
      'The live page says when its data is old: the connection is lost, the sidecar is stopped, too many watch, or a login is needed. It reconnects by itself, shows a restart as such, and is right at once after an absence.',
    reason: 'decision: figures that stand still look like calm',
  },
  H158: {
    sentence:
      'The live page raises one alarm for each cause, which says since when and what to do and links its section of docs/alerts.md; its state line is green only without a warning and without a critical alarm. Each figure says what it counts. Both can be read by keyboard, on touch and by a screen reader, in light and dark (H329, H330).',
    reason: 'WCAG 2.2 AA, which axe-core checks; decision: an operator stands before the device with a phone',
  },
  H159: {
    sentence:
      'The live page revokes one login or all after a question that says what happens, and stays smooth with 1,000 logins.',
    reason: 'a slip of the finger must not log out every client',
  },
  H231: {
    sentence:
      'The filter of the logins on the live page searches all of them, not only the 1,000 that the page lists. Whatever viewers type, at most two passes begin in a second, each for at most eight texts, and a pass makes at most 100,000 comparisons a second; a shared store is listed at most every 10 s.',
    reason:
      '"0 of 10,001" of a client that is logged in reads as all clear; search as a way to load the sidecar',
  },
  H232: {
    sentence:
      'On the live page at 360 px no cell of a login touches another one, no placeholder is cut, and what revokes is at least 44 px high. Rows and the question before a revocation show the id of the login. The state line says that the device is down.',
    reason: 'a finger in front of the device revokes the right one of several logins of a client',
  },
  H233: {
    sentence: 'On a terminal, `postern status` and `postern explain` fit 80 columns and cut no id (H328).',
    reason: 'a serial console is 80 columns wide; an id that is cut revokes nothing',
  },
  H328: {
    sentence:
      'On a terminal, `status`, `explain`, `check`, `issue`, `revoke`, `verify` and the errors of all commands write at most 80 columns, of which a wide character takes two. They break a line between words only: an id, a path, or a command of a remedy stays whole, for copying, and the terminal breaks one that is longer than a line. In a pipe or a file each line is whole. Colour is only on a terminal, not with `NO_COLOR` or `TERM=dumb`, and never the only sign.',
    reason: 'a serial console is 80 columns wide; grep finds nothing in a text that was broken',
  },
  H329: {
    sentence:
      'The live page with its dialogs, and the pages that browsers get to log in, need no sideways scrolling at 320 px, and no text is cut, covered or out of view there, with text of 200 %, or at 1280 px with text of 200 %. axe finds nothing in light and dark, and the tree that a screen reader reads has the order of the page.',
    reason: 'WCAG 2.2 AA: 1.4.4, 1.4.10, 1.3.2, 2.4.6',
  },
  H330: {
    sentence:
      'Everything that the live page and the login pages offer works by keyboard alone. The focus is seen at each stop, in the order of the page, and comes back to the row from which a dialog was opened, although the list changed meanwhile.',
    reason: 'WCAG 2.2 AA: 2.1.1, 2.1.2, 2.4.3, 2.4.7, 2.4.11',
  },
  H160: {
    sentence:
      '`postern explain ID` says of each of the last requests what it was taken for, in whose window it counted, which token was found, what the device answered, and where the time went.',
    reason: '"why was my request refused?" has an answer without a debugger or another log level',
  },
  H161: {
    sentence:
      'The last 800 requests that were answered are remembered, and apart from them the last 400 that failed (5xx, or the device broke off), the last 400 over the limit and the last 400 refused otherwise, in 1 MiB, whatever clients send. The list has the same room for each reason. Of each kind, the first requests of a second are remembered, up to a fifth of its places.',
    reason: 'bounded memory; a flood of refused requests must not wash out the one that is asked for',
  },
  H162: {
    sentence:
      'What is remembered of a request holds no token, password, query, cookie or body, and keeps no part of its header in memory.',
    reason: 'C9; a short text that is cut out of a header would keep all of it alive',
  },
  H163: {
    sentence:
      'Each panel of the Grafana dashboard says what its figure means. It asks for metrics that the sidecar exports, and no metric is missing.',
    reason: 'decision: an operator who sees a figure for the first time must know what to do about it',
  },
  H164: {
    sentence:
      'Each query of the dashboard returns data from a Prometheus that scrapes sidecars, for one and for a fleet, and moves with what it counts.',
    reason: 'a panel that is empty or flat for the wrong reason hides the fault that it is for',
  },
  H165: {
    sentence:
      'Each alert fires when it should, stays silent at a healthy sidecar, and names a section that says how to check and what to do.',
    reason: 'decision: an alarm at night must say what to do',
  },
  H291: {
    sentence:
      'The sidecar itself decides what is an alarm, with or without an open page. The live page and `postern status` show the same ones in the same words, also while the shared store is down. An alert of deploy/postern.rules.yml with the same name has the figure, threshold, severity and times of the same list.',
    reason: 'decision: a threshold that is written down twice tells two operators two things',
  },
} as const satisfies Readonly<Record<`H${number}`, Promised>>
