import { hash } from 'node:crypto'
import { OWN_PATHS } from '../http/admission.ts'
import type { Fields } from '../http/fields.ts'
import { escapeHtml } from '../http/html.ts'
import type { Reply } from '../http/refusal.ts'

/** What a page of the login shows. */
export interface LoginPage {
  readonly realm: string
  /** The value of `Accept-Language`. */
  readonly languages: string | undefined
  readonly message: Message | undefined
  /** What the user can do: log in by the password or log out with a form, or follow a link. Undefined: nothing. */
  readonly action:
    | { readonly kind: 'password' | 'open' | 'login'; readonly to: string }
    | { readonly kind: 'logout' }
    | undefined
}

/** The address of the login that leads to a path. */
export function loginPath(to: string): string {
  return `${OWN_PATHS.login}?to=${encodeURIComponent(to)}`
}

const STYLE = `
:root{color-scheme:light dark}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:min(1rem,4vw);font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere;color:light-dark(#15191d,#e3e7ea);background:light-dark(#f3f5f7,#0e1215)}
main{width:100%;max-width:22rem;padding:min(1.5rem,5vw);border:1px solid light-dark(#d3d9de,#2d353b);border-radius:.75rem;background:light-dark(#fff,#161b1f)}
h1{margin:0 0 1rem;font-size:1.25rem}
form{display:grid;gap:.75rem}
p{margin:0 0 1rem;padding:.5rem min(.75rem,3vw);border-left:.25rem solid;border-radius:.25rem;color:light-dark(#b3261e,#ff8a80)}
p[role=status]{color:light-dark(#0b57b0,#7ab7ff)}
input,button,a{width:100%;min-height:2.75rem;padding:.5rem .75rem;border:1px solid light-dark(#7a858f,#8e99a3);border-radius:.5rem;font:inherit;color:inherit;background:transparent}
button,a{display:block;border-color:transparent;font-weight:600;text-align:center;text-decoration:none;color:light-dark(#fff,#0e1215);background:light-dark(#0b57b0,#7ab7ff);cursor:pointer}
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

function documentOf({ realm, languages, message, action }: LoginPage, head: string): string {
  const [language, words] = wordsFor(languages)
  const title = escapeHtml(realm)
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
<h1>${title}</h1>${message === undefined ? '' : `\n<p id="message" role="${isNews(message) ? 'status' : 'alert'}">${words[message]}</p>`}${
    action === undefined ? '' : `\n${actionOf(action, title, message, words)}`
  }
</main>
</body>
</html>
`
}

/** Whether a message is a status, not an alarm. */
function isNews(message: Message): boolean {
  return message === 'out' || message === 'ended' || message === 'foreign'
}

function actionOf(
  action: NonNullable<LoginPage['action']>,
  title: string,
  message: Message | undefined,
  words: Words,
): string {
  const { kind } = action
  if (kind === 'logout') return formOf(OWN_PATHS.logout, '', words.logout)
  if (kind !== 'password') return `<a href="${escapeHtml(action.to)}">${words[kind]}</a>`
  // A screen reader reads the field, which has the focus when the page opens, and no alert that was there before.
  const described = message === undefined ? '' : ' aria-describedby="message"'
  const wrong = message === 'wrong' ? ' aria-invalid="true"' : ''
  const password = `
<input type="text" autocomplete="username" value="${title}" readonly hidden>
<label for="password">${words.password}</label>
<input id="password" name="password" type="password" autocomplete="current-password" required autofocus${described}${wrong}>`
  return formOf(loginPath(action.to), password, words.login)
}

function formOf(action: string, inputs: string, button: string): string {
  return `<form method="post" action="${escapeHtml(action)}">${inputs}
<button type="submit">${button}</button>
</form>`
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
export type Message = 'wrong' | 'wait' | 'busy' | 'foreign' | 'cleartext' | 'ended' | 'unsent' | 'out'

/** The words of the login page in one language. */
type Words = Readonly<Record<'password' | 'login' | 'logout' | 'open' | Message, string>>

/** By language. A new one needs only its lines here. */
export const WORDS: Readonly<Record<string, Words>> & { readonly en: Words } = {
  en: {
    password: 'Password',
    login: 'Log in',
    logout: 'Log out',
    open: 'Open the device',
    wrong: 'Wrong password.',
    wait: 'Too many attempts. Wait a minute and try again.',
    busy: 'The login did not work. Try again.',
    foreign: 'The request came from another site, so it was not carried out.',
    cleartext: 'This connection is not encrypted, so there is no login. Use an address with https.',
    ended: 'The session has ended, or the password has changed. Log in again.',
    unsent: 'Your input was not sent, because you are not logged in. Log in, then enter it again.',
    out: 'You are logged out.',
  },
  de: {
    password: 'Passwort',
    login: 'Anmelden',
    logout: 'Abmelden',
    open: 'Gerät öffnen',
    wrong: 'Falsches Passwort.',
    wait: 'Zu viele Versuche. Warten Sie eine Minute und versuchen Sie es erneut.',
    busy: 'Die Anmeldung ist fehlgeschlagen. Versuchen Sie es erneut.',
    foreign: 'Die Anfrage kam von einer anderen Website und wurde deshalb nicht ausgeführt.',
    cleartext:
      'Diese Verbindung ist nicht verschlüsselt, deshalb ist keine Anmeldung möglich. Verwenden Sie eine Adresse mit https.',
    ended: 'Die Sitzung ist beendet, oder das Passwort wurde geändert. Melden Sie sich erneut an.',
    unsent:
      'Ihre Eingabe wurde nicht gesendet, weil Sie nicht angemeldet sind. Melden Sie sich an und geben Sie sie noch einmal ein.',
    out: 'Sie sind abgemeldet.',
  },
  fr: {
    password: 'Mot de passe',
    login: 'Se connecter',
    logout: 'Se déconnecter',
    open: 'Ouvrir l’appareil',
    wrong: 'Mot de passe incorrect.',
    wait: 'Trop de tentatives. Attendez une minute, puis réessayez.',
    busy: 'La connexion a échoué. Réessayez.',
    foreign: 'La demande venait d’un autre site et n’a donc pas été exécutée.',
    cleartext:
      'Cette liaison n’est pas chiffrée : la connexion est impossible. Utilisez une adresse en https.',
    ended: 'La session est terminée ou le mot de passe a changé. Reconnectez-vous.',
    unsent:
      'Votre saisie n’a pas été envoyée, car aucune session n’est ouverte. Connectez-vous, puis saisissez-la à nouveau.',
    out: 'Déconnexion effectuée.',
  },
  es: {
    password: 'Contraseña',
    login: 'Iniciar sesión',
    logout: 'Cerrar sesión',
    open: 'Abrir el dispositivo',
    wrong: 'Contraseña incorrecta.',
    wait: 'Demasiados intentos. Espere un minuto y vuelva a intentarlo.',
    busy: 'No se pudo iniciar sesión. Vuelva a intentarlo.',
    foreign: 'La solicitud procede de otro sitio, por lo que no se ejecutó.',
    cleartext:
      'Esta conexión no está cifrada, por lo que no se puede iniciar sesión. Utilice una dirección con https.',
    ended: 'La sesión ha terminado o la contraseña ha cambiado. Inicie sesión de nuevo.',
    unsent:
      'Sus datos no se enviaron porque no hay ninguna sesión abierta. Inicie sesión y vuelva a introducirlos.',
    out: 'Ha cerrado la sesión.',
  },
  it: {
    password: 'Password',
    login: 'Accedi',
    logout: 'Esci',
    open: 'Apri il dispositivo',
    wrong: 'Password errata.',
    wait: 'Troppi tentativi. Attendere un minuto e riprovare.',
    busy: 'Accesso non riuscito. Riprovare.',
    foreign: 'La richiesta proviene da un altro sito, quindi non è stata eseguita.',
    cleartext: 'Questa connessione non è cifrata, quindi non è possibile accedere. Usare un indirizzo https.',
    ended: 'La sessione è terminata o la password è cambiata. Accedere di nuovo.',
    unsent:
      'I dati inseriti non sono stati inviati perché non è attiva alcuna sessione. Accedere e inserirli di nuovo.',
    out: 'Disconnessione effettuata.',
  },
  zh: {
    password: '密码',
    login: '登录',
    logout: '退出登录',
    open: '打开设备',
    wrong: '密码错误。',
    wait: '尝试次数过多。请等待一分钟后重试。',
    busy: '登录失败，请重试。',
    foreign: '该请求来自其他网站，因此未执行。',
    cleartext: '此连接未加密，无法登录。请使用 https 地址。',
    ended: '会话已结束，或密码已更改。请重新登录。',
    unsent: '您尚未登录，输入的内容没有发送。请登录后重新输入。',
    out: '您已退出登录。',
  },
  ja: {
    password: 'パスワード',
    login: 'ログイン',
    logout: 'ログアウト',
    open: '機器を開く',
    wrong: 'パスワードが違います。',
    wait: '試行回数が多すぎます。1分待ってからもう一度お試しください。',
    busy: 'ログインできませんでした。もう一度お試しください。',
    foreign: '別のサイトからの要求のため、実行しませんでした。',
    cleartext: 'この接続は暗号化されていないため、ログインできません。https のアドレスを使用してください。',
    ended: 'セッションが終了したか、パスワードが変更されました。もう一度ログインしてください。',
    unsent:
      'ログインしていないため、入力内容は送信されませんでした。ログインしてから、もう一度入力してください。',
    out: 'ログアウトしました。',
  },
}
