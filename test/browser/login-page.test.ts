import { expect, it } from 'vitest'
import { loginPage } from '../../src/admin/page-login.ts'
import { type LoginMessage, type LoginPage, pageResponse, WORDS } from '../../src/browser/login-page.ts'

const PAGE: LoginPage = {
  realm: 'device',
  languages: undefined,
  message: undefined,
  action: { kind: 'form', to: '/' },
}

/** The text of a page that differs from the usual one in these. */
const bodyOf = (page: Partial<LoginPage> = {}): string => `${pageResponse(200, { ...PAGE, ...page }).body}`

const ACCEPTED: readonly (readonly [languages: string | undefined, language: string])[] = [
  [undefined, 'en'],
  ['', 'en'],
  ['de', 'de'],
  ['DE-at', 'de'],
  [' fr-CH ; q=0.9 , en;q=0.8', 'fr'],
  ['en;q=0.8,fr;q=0.9', 'fr'],
  ['pl,cs;q=0.9,it;q=0.1', 'it'],
  // The first of those that are as good.
  ['ja,zh', 'ja'],
  ['es;q=0.5,it;q=0.5', 'es'],
  // Not wanted, or not said in the grammar of the field.
  ['de;q=0', 'en'],
  ['*', 'en'],
  ['de;q=x,fr;level=1', 'en'],
  ['de-', 'en'],
  ['constructor,__proto__', 'en'],
  // A client that names more than twenty does not make Postern look at them all.
  [`${'pl,'.repeat(19)}de`, 'de'],
  [`${'pl,'.repeat(20)}de`, 'en'],
]

it.each(ACCEPTED)('H187 the login page for Accept-Language %j is in %s', (languages, language) => {
  const page = bodyOf({ languages })
  expect(page).toContain(`<html lang="${language}">`)
  expect(page).toContain(`>${WORDS[language]?.password}</label>`)
})

it('H187 the login page says in each language what has happened: news as a status, all else as an alert', () => {
  const news: readonly LoginMessage[] = ['out', 'ended', 'foreign']
  const alerts: readonly LoginMessage[] = ['wrong', 'wait', 'busy', 'cleartext', 'unsent']
  for (const [language, words] of Object.entries(WORDS)) {
    for (const message of [...news, ...alerts]) {
      const role = news.includes(message) ? 'status' : 'alert'
      expect(bodyOf({ languages: language, message })).toContain(
        `<p id="message" role="${role}">${words[message]}</p>`,
      )
    }
    expect(bodyOf({ languages: language })).not.toContain('<p ')
  }
})

it('H187 the field is described by the message, and marked as invalid if the password was wrong', () => {
  expect(bodyOf({ message: 'wrong' })).toContain(' autofocus aria-describedby="message" aria-invalid="true">')
  for (const message of ['busy', 'wait', 'ended', 'unsent'] as const)
    expect(bodyOf({ message })).toContain(' autofocus aria-describedby="message">')
  expect(bodyOf({ message: undefined })).not.toContain('aria-')
})

it('H187 the login page has one way on: the password, a log-out, a link or none', () => {
  const [password, logout, open, login, none] = (
    [
      { kind: 'form', to: '/oauth/login?to=%2Fa%3Fb%3Dc%26d' },
      { kind: 'logout' },
      { kind: 'link-to-device', to: '/a?b=c&d' },
      { kind: 'link-to-login', to: '/a?b=c&d' },
      undefined,
    ] as const
  ).map((action) => bodyOf({ action }))
  expect(password).toContain('<form method="post" action="/oauth/login?to=%2Fa%3Fb%3Dc%26d">')
  expect(password).toContain('<button type="submit">Log in</button>')
  expect(logout).toContain(
    '<form method="post" action="/oauth/logout">\n<button type="submit">Log out</button>',
  )
  expect(open).toContain('<a href="/a?b=c&amp;d">Open the device</a>')
  expect(login).toContain('<a href="/a?b=c&amp;d">Log in</a>')
  for (const page of [logout, open, login, none]) expect(page).not.toContain('name="password"')
  for (const page of [open, login, none]) expect(page).not.toContain('<form')
  for (const page of [password, logout, none]) expect(page).not.toContain('<a ')
})

it('H187 the realm stands in the title, the heading and the name for a password manager, and is never markup', () => {
  const page = bodyOf({ realm: '<b>"Kessel" & \'Haus\'</b>' })
  expect(page).not.toMatch(/<b>|"Kessel"/)
  const [title] = /(?<=<title>).*(?=<\/title>)/.exec(page) ?? []
  expect(title).toContain('Kessel')
  expect(page).toContain(`<h1>${title}</h1>`)
  expect(page).toContain(`<input type="text" autocomplete="username" value="${title}" readonly hidden>`)
})

it('H355 the fields of both login pages hide the password, and no script is in the way of a paste or a password manager', () => {
  const ofViewers = `${loginPage(401, '', {}).body}`
  for (const page of [bodyOf(), ofViewers]) {
    expect(page).toMatch(
      /<input id="password" name="password" type="password" autocomplete="current-password" required autofocus ?\/?>/,
    )
    expect(page).not.toMatch(/<script|\son[a-z]+=|maxlength/)
  }
})

it('H187 the login page has its length in bytes, its further fields and the further elements of its head', () => {
  const { status, fields, body } = pageResponse(
    401,
    { ...PAGE, languages: 'ja' },
    ['X-A', 'b'],
    '<meta name="c">',
  )
  expect(status).toBe(401)
  expect(fields.slice(-4)).toEqual(['Content-Length', `${Buffer.byteLength(`${body}`)}`, 'X-A', 'b'])
  expect(fields.join(': ')).toMatch(
    /Cache-Control: no-store: .* default-src 'none'; .*frame-ancestors 'self'/,
  )
  expect(body).toContain('</title><meta name="c">\n')
})
