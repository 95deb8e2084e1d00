/** Why a page of the login is shown, other than to ask for the password. */
export type Message = 'wrong' | 'wait' | 'busy' | 'foreign' | 'cleartext'

/** The words of the login page in one language. */
export type Words = Readonly<Record<'password' | 'login' | 'logout' | Message, string>>

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
