import { hash } from 'node:crypto'
import type { Fields } from '../http/fields.ts'
import type { Reply } from '../http/refusal.ts'

/** What a page of the login shows. */
export interface LoginPage {
  readonly realm: string
  /** The value of `Accept-Language`. */
  readonly languages: string | undefined
  readonly message: Message | undefined
  /** Where the form is sent; undefined: there is none. */
  readonly form: { readonly kind: 'login' | 'logout'; readonly action: string } | undefined
}

const STYLE = `
:root{color-scheme:light dark}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1rem;font:1rem/1.5 system-ui,sans-serif;color:light-dark(#15191d,#e3e7ea);background:light-dark(#f3f5f7,#0e1215)}
main{width:100%;max-width:22rem;padding:1.5rem;border:1px solid light-dark(#d3d9de,#2d353b);border-radius:.75rem;background:light-dark(#fff,#161b1f)}
h1{margin:0 0 1rem;font-size:1.25rem;overflow-wrap:anywhere}
form{display:grid;gap:.75rem}
p{margin:0 0 1rem;padding:.5rem .75rem;border-left:.25rem solid;border-radius:.25rem;color:light-dark(#b3261e,#ff8a80)}
input,button{width:100%;min-height:2.75rem;padding:.5rem .75rem;border:1px solid light-dark(#7a858f,#8e99a3);border-radius:.5rem;font:inherit;color:inherit;background:transparent}
button{border-color:transparent;font-weight:600;color:light-dark(#fff,#0e1215);background:light-dark(#0b57b0,#7ab7ff);cursor:pointer}
:focus-visible{outline:.2rem solid light-dark(#0b57b0,#7ab7ff);outline-offset:.15rem}
[hidden]{display:none}
`

const STYLE_HASH = hash('sha256', STYLE, 'base64')

/**
 * A page of the login has no script, loads nothing from elsewhere, and is shown in no frame of another origin (clickjacking).
 * `Referrer-Policy` is not `no-referrer`: with that, browsers send `Origin: null` with the form.
 */
const PAGE_FIELDS: Fields = Object.entries({
  'Content-Type': 'text/html; charset=utf-8',
  'Cache-Control': 'no-store',
  'Content-Security-Policy': `default-src 'none'; img-src data:; style-src 'sha256-${STYLE_HASH}'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'`,
  'X-Frame-Options': 'SAMEORIGIN',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'same-origin',
}).flat()

/** A page of the login, in the language of the browser. `more`: further fields. `head`: further elements of its head. */
export function pageReply(status: number, page: LoginPage, more: Fields = [], head = ''): Reply {
  const body = documentOf(page, head)
  return {
    status,
    fields: [...PAGE_FIELDS, 'Content-Length', String(Buffer.byteLength(body)), ...more],
    body,
  }
}

function documentOf({ realm, languages, message, form }: LoginPage, head: string): string {
  const [language, words] = wordsFor(languages)
  const title = escaped(realm)
  const password = `
<input type="text" autocomplete="username" value="${title}" readonly hidden>
<label for="password">${words.password}</label>
<input id="password" name="password" type="password" autocomplete="current-password" required autofocus>`
  return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<link rel="icon" href="data:,">
<title>${title}</title>${head}
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${title}</h1>${message === undefined ? '' : `\n<p role="alert">${words[message]}</p>`}${
    form === undefined
      ? ''
      : `
<form method="post" action="${escaped(form.action)}">${form.kind === 'login' ? password : ''}
<button type="submit">${words[form.kind]}</button>
</form>`
  }
</main>
</body>
</html>
`
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

export function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ENTITIES[character] ?? '')
}

/** The language that the browser asks for first among those of the page (RFC 9110 §12.5.4); English if it asks for none of them. */
function wordsFor(accepted = ''): readonly [string, Words] {
  let best = 'en'
  let weight = 0
  for (const range of accepted.toLowerCase().split(',').slice(0, 20)) {
    const [, language = '', q = '1'] =
      /^\s*([a-z]{2,3})(?:-[a-z\d-]+)?\s*(?:;\s*q=([\d.]+)\s*)?$/.exec(range) ?? []
    if (!Object.hasOwn(WORDS, language) || !(Number(q) > weight)) continue
    best = language
    weight = Number(q)
  }
  return [best, WORDS[best] ?? WORDS.en]
}

/** Why a page of the login is shown, other than to ask for the password. */
export type Message = 'wrong' | 'wait' | 'busy' | 'foreign' | 'cleartext'

/** The words of the login page in one language. */
type Words = Readonly<Record<'password' | 'login' | 'logout' | Message, string>>

/** By language. A new one needs only its lines here. */
export const WORDS: Readonly<Record<string, Words>> & { readonly en: Words } = {
  en: {
    password: 'Password',
    login: 'Log in',
    logout: 'Log out',
    wrong: 'Wrong password.',
    wait: 'Too many attempts. Wait a minute and try again.',
    busy: 'The login did not work. Try again.',
    foreign: 'The request came from another page. Log in here.',
    cleartext: 'This connection is not encrypted, so there is no login. Use an address with https.',
  },
  de: {
    password: 'Passwort',
    login: 'Anmelden',
    logout: 'Abmelden',
    wrong: 'Falsches Passwort.',
    wait: 'Zu viele Versuche. Warten Sie eine Minute und versuchen Sie es erneut.',
    busy: 'Die Anmeldung ist fehlgeschlagen. Versuchen Sie es erneut.',
    foreign: 'Die Anfrage kam von einer anderen Seite. Melden Sie sich hier an.',
    cleartext:
      'Diese Verbindung ist nicht verschlüsselt, deshalb ist keine Anmeldung möglich. Verwenden Sie eine Adresse mit https.',
  },
  fr: {
    password: 'Mot de passe',
    login: 'Se connecter',
    logout: 'Se déconnecter',
    wrong: 'Mot de passe incorrect.',
    wait: 'Trop de tentatives. Attendez une minute, puis réessayez.',
    busy: 'La connexion a échoué. Réessayez.',
    foreign: 'La demande venait d’une autre page. Connectez-vous ici.',
    cleartext:
      'Cette liaison n’est pas chiffrée : la connexion est impossible. Utilisez une adresse en https.',
  },
  es: {
    password: 'Contraseña',
    login: 'Iniciar sesión',
    logout: 'Cerrar sesión',
    wrong: 'Contraseña incorrecta.',
    wait: 'Demasiados intentos. Espere un minuto y vuelva a intentarlo.',
    busy: 'No se pudo iniciar sesión. Vuelva a intentarlo.',
    foreign: 'La solicitud procede de otra página. Inicie sesión aquí.',
    cleartext:
      'Esta conexión no está cifrada, por lo que no se puede iniciar sesión. Utilice una dirección con https.',
  },
  it: {
    password: 'Password',
    login: 'Accedi',
    logout: 'Esci',
    wrong: 'Password errata.',
    wait: 'Troppi tentativi. Attendere un minuto e riprovare.',
    busy: 'Accesso non riuscito. Riprovare.',
    foreign: 'La richiesta proviene da un’altra pagina. Accedere qui.',
    cleartext: 'Questa connessione non è cifrata, quindi non è possibile accedere. Usare un indirizzo https.',
  },
  zh: {
    password: '密码',
    login: '登录',
    logout: '退出登录',
    wrong: '密码错误。',
    wait: '尝试次数过多。请等待一分钟后重试。',
    busy: '登录失败，请重试。',
    foreign: '该请求来自其他页面。请在此登录。',
    cleartext: '此连接未加密，无法登录。请使用 https 地址。',
  },
  ja: {
    password: 'パスワード',
    login: 'ログイン',
    logout: 'ログアウト',
    wrong: 'パスワードが違います。',
    wait: '試行回数が多すぎます。1分待ってからもう一度お試しください。',
    busy: 'ログインできませんでした。もう一度お試しください。',
    foreign: '別のページからの要求です。ここでログインしてください。',
    cleartext: 'この接続は暗号化されていないため、ログインできません。https のアドレスを使用してください。',
  },
}
